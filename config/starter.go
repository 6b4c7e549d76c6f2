package config

import _ "embed"

//go:embed starter.yaml
var starter []byte

// Starter returns a commented file to start with. It is valid wherever it
// stands: its agent's directory lies beside it and need not exist.
func Starter() []byte { return append([]byte(nil), starter...) }
