// Package clienttest writes what client 2.1.329 writes into its transcript, for
// tests. That a real transcript is read the same way is tested with recorded ones.
package clienttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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

// AgentLine is the record of what the agent says, with its newline.
func AgentLine(text string) string {
	return strings.Replace(UserLine(text), `"type":"user","message":{"role":"user"`, `"type":"assistant","message":{"role":"assistant"`, 1)
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

// SecondAnswer is what becomes of a second entry, "two", behind a first that was answered with
// "first".
type SecondAnswer struct {
	Told   string // what its Stop tells: of an answer of nothing, what was said before
	behind string // what the transcript holds by then
	late   string // and a while later
	Want   string // its reply
}

// SecondAnswers are such, by what they are.
func SecondAnswers() map[string]SecondAnswer {
	handed := UserLine(Feedback + "[x hook]: two")
	return map[string]SecondAnswer{
		"nothing was said":                    {"first", handed, "", ""},
		"nothing but a tool":                  {"first", handed + UserLine("a tool's result"), "", ""},
		"only white space":                    {"first", handed + AgentLine(" \n"), "", ""},
		"a subagent spoke":                    {"first", handed + strings.Replace(AgentLine("first"), "{", `{"isSidechain":true,`, 1), "", ""},
		"it was said before":                  {"first", AgentLine("first") + handed, "", ""},
		"the same was said again":             {"first", handed + AgentLine("first"), "", "first"},
		"the same, written late":              {"first", handed, AgentLine("first"), "first"},
		"all of it is written late":           {"first", "", handed + AgentLine("first"), "first"},
		"the file is made late":               {"first", "", handed, ""},
		"something before a tool":             {"first", handed + AgentLine("first") + UserLine("a tool's result"), "", "first"},
		"there is no transcript to look into": {"first", "", "", "first"},
		"something else":                      {"second", handed, "", "second"},
	}
}

// Write writes the transcript, a part of it after a while.
func (a SecondAnswer) Write(t testing.TB, transcript string) {
	t.Helper()
	if a.behind != "" {
		Append(t, transcript, a.behind)
	}
	if a.late != "" {
		timer := time.AfterFunc(300*time.Millisecond, func() { Append(t, transcript, a.late) })
		t.Cleanup(func() { timer.Stop() })
	}
}

// ClockSteps are what a time server, a person or a suspended machine sets a clock by.
var ClockSteps = []time.Duration{
	-30 * 365 * 24 * time.Hour, -25 * time.Hour, -time.Hour, -3 * time.Second, 0, 3 * time.Second, time.Hour, 30 * 365 * 24 * time.Hour,
}

// wallTime is one in our files, and in the client's.
var wallTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

// SetClock makes it look as if the wall clock had been set by d: what was noted before in a
// folder, and in a transcript, is as far off.
func SetClock(t testing.TB, d time.Duration, folder, transcript string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	hidden, err2 := filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	all := append(files, hidden...)
	if !slices.Contains(all, transcript) {
		all = append(all, transcript)
	}
	for _, path := range all {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		moved := wallTime.ReplaceAllFunc(data, func(text []byte) []byte {
			at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
			if err != nil || at.Year() < 1000 {
				return text
			}
			return []byte(at.Add(-d).Format(`"` + time.RFC3339Nano + `"`))
		})
		if err := os.WriteFile(path, moved, 0o600); err != nil {
			t.Fatal(err)
		}
		at := info.ModTime().Add(-d)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}
