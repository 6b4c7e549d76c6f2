package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/promise"
)

// behind puts a program of a person's own before the client, which turns all
// hooks off. Nothing in the fleet's file tells.
func (f *fleet) behind(script string) {
	f.t.Helper()
	yaml, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	line := strings.Index(string(yaml), "    command: ")
	end := line + strings.Index(string(yaml)[line:], "\n")
	program, err := json.Marshal([]string{f.wrapper(script)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.file, string(yaml)[:line]+"    command: "+string(program)+string(yaml)[end:])
}

// wrapper is a program that is given the client's arguments, and has the client
// itself in $CLIENT.
func (f *fleet) wrapper(script string) string {
	f.t.Helper()
	path := filepath.Join(f.Dir, "wrapper")
	f.write(path+".new", fmt.Sprintf("#!/bin/sh\nCLIENT=%s\n%s\n", shellQuoted(f.clientCommand()), script))
	if err := os.Chmod(path+".new", 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// TestTheClientRunsAndOurHooksDoNot: the model works on the first entry, a tool
// runs, and no hook says so. It is started once: the agent is held, and the
// entry, which the transcript shows, counts as started. One entry's tool had run
// six times.
func TestTheClientRunsAndOurHooksDoNot(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"it stays":        `echo '{"disableAllHooks":true}' >.claude/settings.local.json; eval exec "$CLIENT" '"$@"'`,
		"it ends":         `echo '{"disableAllHooks":true}' >.claude/settings.local.json; eval exec "$CLIENT" -p '"$@"' </dev/null`,
		"it cleans up":    `eval exec "$CLIENT" --setting-sources user '"$@"'`,
		"a file of hooks": `rm -f .claude/settings.json; eval exec "$CLIENT" '"$@"'`,
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"start-timeout: 20s"})
				f.behind(script)
				f.teach(behaviour{match: "use a tool", bash: "echo ran >> ran.txt", reply: "done"})
				f.send("use a tool")
				f.send("the next one")
				s := f.start()
				f.Until("the agent is held", func() bool { return strings.Contains(f.must("", "status"), "held") })
				if why := f.ends(); len(why) != 1 || !strings.HasPrefix(why[0], "hooks-do-not-run") {
					t.Errorf("sessions ended by %q", why)
				}
				ran, _ := os.ReadFile(filepath.Join(f.Work, "ran.txt"))
				if strings.Count(string(ran), "ran\n") > 1 {
					t.Errorf("the tool ran %d times", strings.Count(string(ran), "ran\n"))
				}
				if dead := f.dead(); len(dead) != 1 || dead[0].Reason != promise.ByInterruption || dead[0].Attempts != 1 {
					t.Errorf("dead letters: %+v", dead)
				}
				if got := f.prompts(); len(got) < 1 || strings.Contains(strings.Join(got, "|"), "the next one") {
					t.Errorf("prompts: %q", got)
				}
				if out := f.must("", "status"); !strings.Contains(out, "hooks-do-not-run") || !strings.Contains(out, "doctor") {
					t.Errorf("status does not say why:\n%s", out)
				}
				s.stop()
				f.gone()
			})
		})
	}
}

// TestWhatIsKnownToTurnHooksOffCostsNoTurn: the agent is held before anything
// is started, with what to do.
func TestWhatIsKnownToTurnHooksOffCostsNoTurn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, client{name: "simulate"}, nil)
	f.teach()
	put(f.Lab, userFile, `{"disableAllHooks":true}`)
	f.send("hello")
	f.start()
	f.Until("the agent is held", func() bool { return strings.Contains(f.must("", "status"), "held") })
	if out := squeezed(f.must("", "status")); !strings.Contains(out, "says disableAllHooks do remove disableAllHooks from") {
		t.Errorf("status does not say why:\n%s", out)
	}
	if n := len(f.calls()) + len(f.ends()); n != 0 {
		t.Errorf("%d model calls and ends", n)
	}
	put(f.Lab, userFile, `{}`)
	f.must("", "resume", "a")
	f.Until("the reply", func() bool { return len(f.outbox()) == 1 })
}

func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
