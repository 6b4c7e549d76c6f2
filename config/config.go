// Package config is heartbeat.yaml, typed and checked. It is the only owner
// of yaml. It reads the file and nothing else of the world but whether
// directories and prompt files exist, and reports all problems at once with
// file:line:column.
package config
