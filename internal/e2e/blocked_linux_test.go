package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// called has the fleet run its client by a program of the client's own name, as
// the stand-in's is another.
func (f *fleet) called() {
	f.t.Helper()
	f.behind(`eval exec "$CLIENT" '"$@"'`)
	yaml, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	named := filepath.Join(f.Dir, "claude")
	if err := os.Rename(filepath.Join(f.Dir, "wrapper"), named); err != nil {
		f.t.Fatal(err)
	}
	f.write(f.file, strings.Replace(string(yaml), filepath.Join(f.Dir, "wrapper"), named, 1))
}

// TestWhatCannotWorkHoldsAtOnce: nothing is started, status says what to do, and
// the agent continues by itself once that is done. Each of them took six sessions
// of half a minute, or a paid turn, and then a person who resumed the agent.
func TestWhatCannotWorkHoldsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sick, mend     func(f *fleet)
		says, do, code string
	}{
		"not trusted": {
			func(f *fleet) { f.Trust() }, func(f *fleet) { f.must("", "apply", "--trust", "--yes", "a") },
			"is not trusted", "heartbeat apply --trust a", "not-trusted",
		},
		"hooks off": {
			func(f *fleet) { put(f.Lab, userFile, `{"disableAllHooks":true}`) }, func(f *fleet) { put(f.Lab, userFile, `{}`) },
			"says disableAllHooks", "remove disableAllHooks from", "hooks-disabled",
		},
		"a wrong rule": {
			func(f *fleet) { put(f.Lab, localFile, `{"permissions":{"allow":["read"]}}`) }, func(f *fleet) { put(f.Lab, localFile, `{}`) },
			`"read" is refused`, "correct ", "settings-refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, which client) {
				f := newFleet(t, which, nil)
				f.called()
				f.teach()
				c.sick(f)
				f.send("hello")
				if out, _, code := f.heartbeat("", "run", "--once"); code != 1 || !strings.Contains(squeezed(out), c.says) || !strings.Contains(squeezed(out), " do "+c.do) {
					t.Errorf("run --once: exit %d\n%s", code, out)
				}
				f.start()
				var out string
				f.Until("the agent is held, and status says why", func() bool { // which is told before this run has tried, too
					out = squeezed(f.must("", "status"))
					return strings.Contains(out, "1 agent: 1 held") && strings.Contains(out, c.says)
				})
				if !strings.Contains(out, " do "+c.do) || !strings.Contains(out, "then it continues by itself") {
					t.Errorf("status does not say what to do:\n%s", out)
				}
				if out, _, _ := f.heartbeat("", "doctor"); !strings.Contains(out, c.code) {
					t.Errorf("doctor does not agree:\n%s", out)
				}
				if n := len(f.calls()) + len(f.ends()); n != 0 {
					t.Errorf("%d model calls and ends", n)
				}
				c.mend(f)
				f.Until("the reply", func() bool { return len(f.outbox()) == 1 })
				if dead := f.dead(); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
			})
		})
	}
}

// asks is something that a client asks at its start.
type asks struct {
	sick, mend func(f *fleet)
	says, do   string
	simulated  string // flags of the stand-in, which asks that only then
	realOnly   bool
}

func answered(f *fleet) { f.Trust(f.Work) }

// TestWhatTheClientAsksHoldsAtOnce: a client that is called by another program, of
// which nobody knows what it asks at its start, was started six times for what
// stands on its screen. What the stand-in asks, too, stands in waits_linux_test.go.
func TestWhatTheClientAsksHoldsAtOnce(t *testing.T) {
	t.Parallel()
	without := func(key string) func(f *fleet) {
		return func(f *fleet) { own(f.Lab, func(all, _ map[string]any) { delete(all, key) }) }
	}
	for name, c := range map[string]asks{
		"onboarding": {
			sick: without("hasCompletedOnboarding"), mend: answered, realOnly: true,
			says: "the client asks how it is to look: it was never started", do: "run claude once and go through its first screens",
		},
		"key": {
			sick: without("customApiKeyResponses"), mend: answered, realOnly: true,
			says: "the client asks whether to use the API key", do: "run claude once with this key and choose Yes",
		},
	} {
		t.Run(name, func(t *testing.T) { c.holds(t) })
	}
}

// holds checks that the agent is held with what is asked, and goes on when that is mended.
func (c asks) holds(t *testing.T) {
	standInFirst(t, func(t *testing.T, which client) {
		if c.realOnly && !which.real {
			return
		}
		// The question is read when this is over; busy machines start clients slowly.
		patient, flags := "start-timeout: 10s", c.simulated
		if which.real {
			patient, flags = "start-timeout: 45s", ""
		}
		f := newFleet(t, which, []string{patient})
		f.behind(`eval exec "$CLIENT" ` + flags + ` '"$@"'`)
		f.teach()
		c.sick(f)
		f.send("hello")
		f.start()
		f.Until("the agent is held", func() bool { return strings.Contains(squeezed(f.must("", "status")), "held for") })
		if out := squeezed(f.must("", "status")); !strings.Contains(out, c.says+" do "+c.do+" then it continues by itself") {
			t.Errorf("status does not say why:\n%s", out)
		}
		if ends := f.ends(); len(ends) != 1 || len(f.calls()) != 0 {
			t.Errorf("%d model calls, ends %q", len(f.calls()), ends)
		}
		c.mend(f)
		f.Until("the reply", func() bool { return len(f.outbox()) == 1 })
		if ends := f.ends(); len(f.dead()) != 0 || len(ends) > 2 {
			t.Errorf("dead letters %+v, ends %q", f.dead(), ends)
		}
	})
}
