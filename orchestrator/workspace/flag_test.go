package workspace

import (
	"errors"
	"os"
	"strings"
	"testing"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/preflight"
)

// theirs are settings that a person passes to the client.
const theirs = `{"env":{"TOKEN":"secret"},"permissions":{"allow":["WebFetch"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}`

// TestTheCommandsSettingsAreRenderedWithOurs: the client takes the last
// --settings alone, and a person's own was dropped without a word.
func TestTheCommandsSettingsAreRenderedWithOurs(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"a file":           {"claude", "--settings", "mine.json"},
		"a file, =":        {"claude", "--settings=mine.json", "--verbose"},
		"JSON":             {"claude", "--settings", " " + theirs + " "},
		"the last of many": {"claude", "--settings", `{"env":{"OTHER":"x"}}`, "--settings", "mine.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.agent.Settings, b.agent.Command = config.SettingsFlag, command
			b.put("mine.json", theirs)
			p := b.apply()
			r := rendered(t, p)
			if r.Env["TOKEN"] != "secret" || r.Env["OTHER"] != "" || strings.Join(r.Allow, " ") != "WebFetch Read "+sign {
				t.Errorf("env %v, allow %v", r.Env, r.Allow)
			}
			var stops []string
			for _, h := range r.Hooks {
				if h.Event == "Stop" {
					stops = append(stops, h.Command)
				}
			}
			if len(stops) != 2 || stops[0] != "theirs" || len(p.Others.Hooks) != 1 {
				t.Errorf("Stop hooks %q, others %+v", stops, p.Others)
			}
			if p := b.plan(); p.Changes() || strings.Contains(p.Diff(), "secret") {
				t.Errorf("the second time: %v\n%s", b.changes(p), p.Diff())
			}
			if info, err := os.Stat(p.SettingsFile); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

func rendered(t *testing.T, p *Plan) *settings.Report {
	t.Helper()
	data, err := os.ReadFile(p.SettingsFile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := settings.Inspect(data, p.hook.Command)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The file is read anew before each session, and one that cannot be read keeps
// the session from starting without what it says.
func TestTheCommandsSettingsAreReadAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.agent.Settings, b.agent.Command = config.SettingsFlag, []string{"claude", "--settings", b.path("mine.json")}
	for _, text := range []string{theirs, `{"env":{"TOKEN":"another"}}`, "", theirs} {
		b.put("mine.json", text)
		p := b.apply()
		if want, got := strings.Contains(text, "another"), rendered(t, p).Env["TOKEN"]; want != (got == "another") {
			t.Errorf("%q: TOKEN is %q", text, got)
		}
		if strings.Contains(p.Diff(), "secret") {
			t.Errorf("a secret is shown:\n%s", p.Diff())
		}
	}
	b.put("mine.json", "{ // mine")
	if _, err := New(b.agent, b.state, b.hook); !blocked(err) {
		t.Errorf("broken: %v", err)
	}
	if err := os.Remove(b.path("mine.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(b.agent, b.state, b.hook); !blocked(err) || !strings.Contains(err.Error(), "mine.json") {
		t.Errorf("missing: %v", err)
	}
}

func blocked(err error) bool {
	_, ok := errors.AsType[*preflight.BlockedError](err)
	return ok
}
