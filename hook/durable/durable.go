// Package durable replaces and extends files so that a crash or a power cut
// leaves either the old or the new content, and a nil error means that the
// new content is on disk.
package durable
