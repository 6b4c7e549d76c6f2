// Package config reads heartbeat.yaml and returns it typed and checked. It is the
// only package that parses YAML. Besides the file it only looks at whether
// directories and prompt files exist. It reports all problems at once, with
// file:line:column.
//
// An agent's own fields override the defaults of its file, and those override the
// defaults of the files that include it, field by field. A relative path is
// relative to the file that contains it. The types in document*.go are the list of
// keys: the loader and the JSON Schema are both derived from them, and a test
// checks that both accept the same files.
//
// What cannot run is a problem; what is probably a mistake is a warning. A problem
// in one agent rejects the whole file: a fleet never runs in part. An env-file is
// read when something is started, not before.
package config

import _ "embed"

//go:embed starter.yaml
var starter []byte

//go:embed reference.yaml
var reference []byte

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of heartbeat.yaml, for editors and
// other programs. Every file that the loader accepts conforms to it. A file that
// conforms may still have problems: a schema cannot check directories, cron
// expressions, templates, or several keys together.
func Schema() []byte { return append([]byte(nil), schema...) }

// Starter returns a short file to start with. It is valid in any folder: its agent's
// directory is relative to the file and need not exist.
func Starter() []byte { return append([]byte(nil), starter...) }

// Reference returns such a file with all keys, what they mean and their defaults.
func Reference() []byte { return append([]byte(nil), reference...) }
