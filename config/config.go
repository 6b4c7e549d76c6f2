// Package config is heartbeat.yaml, typed and checked. It is the only owner
// of yaml. It reads the file and nothing else of the world but whether
// directories and prompt files exist, and reports all problems at once with
// file:line:column.
//
// An agent is its own fields over the defaults of its file, over those of the
// files that include it, field by field; a relative path begins at the file
// that says so. The types in document.go are the list of keys: loader and JSON
// Schema are made of them, and a test holds both to one judgement.
//
// What cannot be run is a problem, what is most likely not meant a warning. A
// problem in one agent refuses the whole file: no fleet is run in part. What an
// env-file holds is read when something is started, not before.
package config

import _ "embed"

//go:embed starter.yaml
var starter []byte

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of heartbeat.yaml, for editors
// and other programs. What the loader takes conforms to it; what conforms to it
// may still have problems, as a schema cannot look at directories, cron
// expressions, templates, or several keys at once.
func Schema() []byte { return append([]byte(nil), schema...) }

// Starter returns a commented file to start with. It is valid wherever it
// stands: its agent's directory lies beside it and need not exist.
func Starter() []byte { return append([]byte(nil), starter...) }
