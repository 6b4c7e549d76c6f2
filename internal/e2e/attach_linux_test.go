package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/simulate/script"
)

// detachKey is the default of --detach-keys, ctrl-\.
const detachKey = "\x1c"

// join runs `heartbeat attach` in a person's terminal.
func (f *fleet) join(args ...string) *Terminal {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(f.bin, "heartbeat"), append([]string{"attach", "a"}, args...)...)
	cmd.Env, cmd.Dir = f.Env(), f.Dir
	return startTerminal(f.t, cmd)
}

// leaves presses the key that leaves the session.
func (p *Terminal) leaves() {
	p.t.Helper()
	p.Type(detachKey)
	if end := p.WaitExit(patience); end != "exit 0" {
		p.t.Errorf("attach ended by %s", end)
	}
}

// TestAttachToALiveClient: a person joins, sees the client's own screen, types,
// is answered and leaves; the queue goes on.
func TestAttachToALiveClient(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		f.teach(behaviour{match: "what time", reply: "it is late"}, behaviour{match: "before", reply: "done with that"})
		f.start()
		f.send("before")
		f.phase(hook.Waiting)
		first := f.session()

		looker := f.join("--read-only")
		f.Until("a looker sees the screen", func() bool { return looker.Shows("done with that") })
		looker.leaves()
		if r := f.session(); r.Session != first.Session || r.Phase != hook.Waiting || r.Waiter != first.Waiter {
			t.Errorf("a look has disturbed the session: %+v", r)
		}

		person := f.join()
		f.Until("a person sees the screen", func() bool { return person.Shows("done with that") })
		f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
		person.Submit("what time is it")
		f.Until("the person's turn", func() bool {
			return slices.ContainsFunc(f.prompts(), func(p string) bool { return strings.Contains(p, "what time") })
		})
		f.Until("the answer", func() bool { return person.Shows("it is late") })
		f.Until("heartbeat screen", func() bool { return strings.Contains(f.must("", "screen", "a"), "it is late") })
		f.send("after")
		f.phase(hook.Waiting)
		f.Until("status says why", func() bool {
			return strings.Contains(f.must("", "status"), "a person has typed in its session; prompts continue in ")
		})
		if n := len(f.outbox()); n != 1 {
			t.Errorf("%d replies right after a person has typed, want 1", n)
		}
		person.leaves()
		f.Until("the person is not noted any more", func() bool { return f.session().Attached == 0 })
		f.Until("the next reply", func() bool { return len(f.outbox()) == 2 })
		if r := f.session(); r.Session != first.Session {
			t.Errorf("another session, so another conversation: %+v", r)
		}
	})
}

// TestWhatAPersonSubmitsInATurn: it reaches the model before the next entry,
// although the person has left, whether the client takes it between two tools
// or after the turn. A command is taken, too.
func TestWhatAPersonSubmitsInATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line  string
		steps func(f *fleet) []script.Step // what the turn does until the person has left
		taken func(f *fleet) bool
	}{
		"a prompt": {"PLEASE ALSO DO THIS", thinks, prompted("PLEASE ALSO")},
		"a prompt between tools": {
			"PLEASE ALSO DO THIS", func(f *fleet) []script.Step {
				return []script.Step{bash("until [ -e '" + f.left() + "' ]; do sleep 0.1; done"), think(3 * time.Second)}
			}, prompted("PLEASE ALSO"),
		},
		"a command": {"/clear", thinks, func(f *fleet) bool {
			return f.cleared()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, cl client) {
				f := newFleet(t, cl, persist)
				f.turns(turn{match: "long", times: 1, steps: append(c.steps(f), say("done with that"))})
				f.send("a long one")
				f.send("the next one")
				f.start()
				f.Until("the model call", func() bool { return len(f.calls()) == 1 })
				person := f.join()
				f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
				person.Submit(c.line)
				f.Until("the line is noted", func() bool { return !f.session().Hush.IsZero() })
				time.Sleep(time.Second) // the client reads its keys
				person.leaves()
				if len(f.outbox()) != 0 {
					t.Fatal("the turn was over before they left")
				}
				f.write(f.left(), "")
				f.Until("what they submitted", func() bool { return c.taken(f) })
				f.Until("the next reply, without a pause", func() bool { return len(f.outbox()) == 2 })
				about := func(text string) int {
					return slices.IndexFunc(f.prompts(), func(p string) bool { return strings.Contains(p, text) })
				}
				if typed, next := about("PLEASE ALSO"), about("the next one"); name != "a command" && typed > next {
					t.Errorf("the queue went on before: %q", f.prompts())
				}
			})
		})
	}
}

// left is a file that stands for a person's having left.
func (f *fleet) left() string { return filepath.Join(f.Dir, "left") }

// thinks is a model that says nothing until the person has left.
func thinks(f *fleet) []script.Step { return []script.Step{await(f.left())} }

// TestACommandIsTakenWhileTheSessionWaits: no hook hears of it, and it stood
// behind the waiting hook for as long as that waited.
func TestACommandIsTakenWhileTheSessionWaits(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		f.teach()
		f.start()
		f.send("before")
		f.phase(hook.Waiting)
		person := f.join()
		f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
		begun := time.Now()
		person.Submit("/clear")
		f.phase(hook.Unattended)
		t.Logf("taken after %v", time.Since(begun))
		f.send("after")
		if o := f.must("", "status"); !strings.Contains(o, "a person uses its session") {
			t.Errorf("status does not say why nothing is handed over:\n%s", o)
		}
		person.leaves()
		f.Until("the next reply", func() bool { return len(f.outbox()) == 2 })
	})
}

func prompted(text string) func(f *fleet) bool {
	return func(f *fleet) bool {
		return slices.ContainsFunc(f.prompts(), func(p string) bool { return strings.Contains(p, text) })
	}
}

// TestAPersonAnswersTheTrustDialog: the session goes on, also when the person
// takes longer than start-timeout.
func TestAPersonAnswersTheTrustDialog(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"start-timeout: 6s", "max-restarts: 0"})
		if !c.real {
			yaml, err := os.ReadFile(f.file)
			if err != nil {
				t.Fatal(err)
			}
			f.write(f.file, strings.Replace(string(yaml), "simulate, ", "simulate, --require-trust, ", 1))
		} else {
			f.behind(`eval exec "$CLIENT" '"$@"'`) // of claude itself it is known that it would ask
		}
		f.teach()
		f.Trust()
		f.send("hello")
		f.start()
		f.Until("the dialog", func() bool { return strings.Contains(f.terminal(), "trust") })
		began := time.Now()
		person := f.join()
		f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
		f.Until("the person sees the dialog", func() bool { return person.Shows("trust") })
		f.Until("start-timeout is over", func() bool { return time.Since(began) > 7*time.Second })
		if why := f.ends(); len(why) > 0 {
			t.Fatalf("ended under the person's hands: %q", why)
		}
		person.Type("\x1b[B") // the second line: yes
		time.Sleep(300 * time.Millisecond)
		person.Type("\r")
		person.leaves() // at once: the client has not even started
		f.Until("the entry is done", func() bool { return len(f.outbox()) == 1 })
	})
}
