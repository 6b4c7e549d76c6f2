package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// member is an agent of a crew.
type member struct {
	name string
	// token is that of the subscription that it works on, or apiKey.
	token  string
	fields []string // further ones, one a line
}

// newCrew prepares a lab with several agents on subscriptions. The stand-in asks the
// fake API, too, so that this one counts for either client.
func newCrew(t *testing.T, c client, members []member, rules ...fakeapi.Rule) *fleet {
	t.Helper()
	l := newLab(t, c, nil, rules...)
	f := &fleet{Lab: l, bin: testbed.Programs(t), file: filepath.Join(l.Dir, "heartbeat.yaml")}
	command := fmt.Sprintf("[%q]", c.path)
	if !c.real {
		command = "[heartbeat, simulate, --api]"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "version: 1\nshutdown-grace: none\nmax-sessions: %d\ndefaults:\n  command: %s\n", len(members), command)
	fmt.Fprint(&text, "  permissions: {allow: [Bash, Agent]}\n  end-grace: 5s\nagents:\n")
	var dirs []string
	for _, m := range members {
		dir := filepath.Join(l.Dir, "agents", m.name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		variable := "CLAUDE_CODE_OAUTH_TOKEN"
		if m.token == apiKey {
			variable = "ANTHROPIC_API_KEY"
		}
		fmt.Fprintf(&text, "  %s:\n    dir: %s\n    env: {%s: %q}\n", m.name, strconv.Quote(dir), variable, m.token)
		for _, field := range m.fields {
			fmt.Fprintf(&text, "    %s\n", field)
		}
	}
	f.write(f.file, text.String())
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, m := range members {
			for _, file := range []string{"inbox.jsonl", ".in-flight", "outbox.jsonl", ".dead-letter.jsonl"} {
				if b, err := os.ReadFile(filepath.Join(l.Dir, "agents", m.name, ".heartbeat", file)); err == nil {
					t.Logf("%s, %s:\n%s", m.name, file, b)
				}
			}
		}
	})
	l.Trust(dirs...)
	l.Setenv("HEARTBEAT_STATE_DIR="+filepath.Join(l.Dir, "state"), "HEARTBEAT_FILE="+f.file, "ANTHROPIC_API_KEY=")
	return f
}

// of is what a file of an agent's queue has.
func of[T any](f *fleet, agent, file string) []T {
	f.t.Helper()
	return readLines[T](f.t, filepath.Join(f.Dir, "agents", agent, ".heartbeat", file))
}

func (f *fleet) doneBy(agent string) []promise.Reply {
	f.t.Helper()
	return of[promise.Reply](f, agent, "outbox.jsonl")
}

// states is what `status` says that agents do, by their names.
func (f *fleet) states() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(f.must("", "status")) {
		if words := strings.Fields(line); len(words) > 1 {
			all[words[0]] = words[1]
		}
	}
	return all
}
