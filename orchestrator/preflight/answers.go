package preflight

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/hook/client"
)

// Answers changes with everything that may answer a question that the client asks
// at its start: the person's answers in the client's own file, the settings, the
// environment, a saved login, the client itself. It contains no secret, and can only be compared.
func (c Client) Answers(all []Settings) string {
	own := c.ownFile()
	above := map[string]ownProject{}
	for at := c.Dir; ; at = filepath.Dir(at) {
		above[at] = own.Projects[at]
		if at == filepath.Dir(at) {
			break
		}
	}
	program := c.Locate()
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	type written struct {
		Name  string
		Bytes []byte
	}
	facts := struct {
		Broken           string
		Onboarded, Login bool
		Keys             any
		Above            map[string]ownProject
		Settings         []written
		Servers, Imports []string
		Variables        []string
		Command          []string
		Program, Saved   []any
	}{
		Broken: own.broken, Onboarded: own.Onboarded, Login: own.Account != nil, Keys: own.Keys, Above: above,
		Servers: serversOf(c.Dir), Imports: importsOf(c.Dir, c.Env["HOME"]), Command: c.Command,
		Program: identity(program), Saved: identity(filepath.Join(c.ConfigDir(), client.Claude.Settings.Login)),
	}
	for _, s := range all {
		facts.Settings = append(facts.Settings, written{s.Name, s.Data})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		facts.Variables = append(facts.Variables, name+"="+c.Env[name])
	}
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(facts); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// identity identifies a program: another one in its place differs.
func identity(path string) []any {
	info, err := os.Stat(path)
	if err != nil {
		return []any{path}
	}
	return []any{path, info.Size(), info.ModTime().UnixNano()}
}
