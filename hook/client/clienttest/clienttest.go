// Package clienttest writes what client 2.1.329 writes into its transcript, for
// tests. That a real transcript is read the same way is tested with recorded ones.
package clienttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Feedback begins the user message in which the client tells the model what a Stop
// hook has said.
const Feedback = "Stop hook feedback:\n"

// UserLine is the record of a user message, with its newline.
func UserLine(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"type":"user","message":{"role":"user","content":[{"type":"text","text":` + string(b) + `}]}}` + "\n"
}

// StopLine is the record of a Stop, without a newline: the hooks that ran and what
// they said, each as elements of a JSON array.
func StopLine(infos, errors string) string {
	return `{"isSidechain":false,"type":"system","subtype":"stop_hook_summary","hookInfos":[` + infos + `],"hookErrors":[` + errors +
		`],"failedHookErrorIndexes":[],"hookAdditionalContext":[],"preventedContinuation":false}`
}

// Transcript is the path of a new transcript with these records.
func Transcript(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Append extends a transcript, or any other file, and makes it if need be.
func Append(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
