package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatDecidesIsOnlyOurs walks what decides what an agent does: where another user owns
// or can write it, the agent does not run, and validate says what to type. An agent worked
// on prompts that another user of the machine had put in its place.
func TestWhatDecidesIsOnlyOurs(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	for _, name := range []string{"agents", "agents/a", "agents/a/.heartbeat", "agents/a/in", "agents/a/in/box.jsonl", "agents/a/in/urgent.jsonl", "agents/a/in/.in-flight", "agents/a/in/.urgent-in-flight", "agents/a/in/.dead-letter.jsonl", "agents/a/.heartbeat/later", "agents/a/.claude", "agents/a/.claude/settings.json", "agents/a/.claude/settings.local.json"} {
		for how, change := range map[string]func(path string) error{
			"everybody can write it": func(path string) error { return os.Chmod(path, 0o777) },
			"it belongs to user":     func(path string) error { return os.Chown(path, nobody, -1) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				if strings.Contains(how, "belongs") && os.Getuid() != 0 {
					t.Skip("only root can give files away")
				}
				path := fleetOf(t, map[string]string{
					"heartbeat.yaml":        "version: 1\nagents: {a: {dir: agents/a, inbox: in/box.jsonl}, b: {dir: b}}\n",
					"agents/a/in/box.jsonl": "", "agents/a/.heartbeat/later/x": "",
					"agents/a/in/urgent.jsonl": "", "agents/a/in/.in-flight": "", "agents/a/in/.urgent-in-flight": "", "agents/a/in/.dead-letter.jsonl": "", "agents/a/.claude/settings.json": "{}", "agents/a/.claude/settings.local.json": "{}",
				})
				f, err := Load(path)
				if err != nil || f.Agent("a").Exposed() != nil {
					t.Fatal(err, f.Agent("a").Exposed())
				}
				at := filepath.Join(filepath.Dir(path), name)
				if err := change(at); err != nil {
					t.Fatal(err)
				}
				if f, err = Load(path); err != nil {
					t.Fatal(err)
				}
				if err := f.Agent("b").Exposed(); err != nil {
					t.Error("another agent's: ", err)
				}
				err = f.Agent("a").Exposed()
				e, _ := err.(*ExposedError)
				if e == nil || !strings.Contains(e.Error(), how) || !strings.HasSuffix(e.Hint(), at+" if it is yours") {
					t.Fatalf("%v: %+v", err, e)
				}
				if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, e.Error()) || f.Warnings[0].Hint != e.Hint() {
					t.Error(f.Warnings)
				}
			})
		}
	}
}
