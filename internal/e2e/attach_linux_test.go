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
	bothClients(t, func(t *testing.T, c client) {
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
		person.Type("\x1b") // the waiting hook holds the turn
		f.phase(hook.Unattended)
		person.Submit("what time is it")
		f.Until("the person's turn", func() bool {
			return slices.ContainsFunc(f.prompts(), func(p string) bool { return strings.Contains(p, "what time") })
		})
		f.Until("the answer", func() bool { return person.Shows("it is late") })
		f.Until("heartbeat screen", func() bool { return strings.Contains(f.must("", "screen", "a"), "it is late") })
		f.send("after")
		person.leaves()
		f.Until("the next reply", func() bool { return len(f.outbox()) == 2 })
		if r := f.session(); r.Attached != 0 {
			t.Errorf("the person is still noted: %+v", r)
		}
	})
}

// TestAPersonAnswersTheTrustDialog: the session goes on, also when the person
// takes longer than start-timeout.
func TestAPersonAnswersTheTrustDialog(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"start-timeout: 6s", "max-restarts: 0"})
		if !c.real {
			yaml, err := os.ReadFile(f.file)
			if err != nil {
				t.Fatal(err)
			}
			f.write(f.file, strings.Replace(string(yaml), "simulate, ", "simulate, --require-trust, ", 1))
		}
		f.teach()
		f.Trust()
		f.send("hello")
		f.start()
		f.Until("the dialog", func() bool { return strings.Contains(f.terminal(), "trust") })
		began := f.session().StartedAt
		person := f.join()
		f.Until("the person is noted", func() bool { r := f.session(); return r != nil && r.Attached == 1 })
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
