package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// beside is what happens to a session beside a check of its work.
type beside struct {
	name string
	// does is done by a person who has joined, or to the session.
	does  func(f *fleet, p *Terminal)
	until func(f *fleet) bool
	runs  int // how often the check is made
	// realOnly is what the stand-in has not.
	realOnly bool
}

func hasEnded(f *fleet) bool { return len(f.ends()) > 0 }

func kills(who func(s *seen) int) func(f *fleet, _ *Terminal) {
	return func(f *fleet, _ *Terminal) {
		if err := kill(who(f.session()), syscall.SIGKILL); err != nil {
			f.t.Error(err)
		}
	}
}

func submits(line string) func(f *fleet, p *Terminal) {
	return func(_ *fleet, p *Terminal) { p.Submit(line) }
}

func besides() []beside {
	return []beside{
		{
			name: "types", does: submits("LOOK AT THIS, TOO"), runs: 2,
			until: func(f *fleet) bool {
				r := f.session()
				return prompted("LOOK AT THIS")(f) && r.Phase == hook.Checking && r.Waiter > 0
			},
		},
		{
			name: "interrupts the hook", runs: 1,
			does: func(_ *fleet, p *Terminal) { p.Type("\x1b") },
			until: func(f *fleet) bool {
				r := f.session()
				return r.Phase == hook.Checking && r.Waiter == 0
			},
		},
		{
			name: "clears the conversation", does: submits("/clear"), runs: 1,
			until: func(f *fleet) bool {
				return f.cleared()
			},
		},
		{
			name: "compacts the conversation", does: submits("/compact"), runs: 1, realOnly: true,
			until: func(f *fleet) bool { return f.requests() > 1 },
		},
		{name: "exits", does: submits("/exit"), until: hasEnded, runs: 1},
		{name: "hangs up", does: func(_ *fleet, p *Terminal) { p.HangUp() }, until: func(f *fleet) bool { return f.session().Attached == 0 }, runs: 1},
		{
			name: "the kernel kills the client", until: hasEnded, runs: 1,
			does: kills(func(s *seen) int { return s.Client }),
		},
		{
			name: "the client's terminal is gone", until: hasEnded, runs: 1,
			does: kills(func(s *seen) int { return s.Shim }),
		},
	}
}

// notOnce has a check that waits for a file, and does not pass at first.
const notOnce = `until: {check: [sh, -c, "echo x >> runs; while [ ! -e go ]; do sleep 0.1; done; [ -e once ] || { touch once; echo not yet; exit 1; }"], check-timeout: 2m}`

// TestWhatHappensToASessionWhileACheckRuns: a turn of a person's has the work checked
// anew, and nothing else that they do, or that befalls the session, keeps the verdict
// from it. Nothing is handed over twice.
func TestWhatHappensToASessionWhileACheckRuns(t *testing.T) {
	t.Parallel()
	for _, b := range testbed.SampleOf(t, besides(), 8) {
		t.Run(b.name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				if b.realOnly && !c.real {
					return
				}
				f := newFleet(t, c, []string{notOnce})
				f.teach(behaviour{match: "LOOK AT", reply: "looked"}, behaviour{match: "work", reply: "done"})
				f.sendAs("work")
				f.start()
				f.Until("the check to begin", func() bool { return f.runs() == 1 && f.session().Waiter > 0 })
				person := f.join()
				f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
				b.does(f, person)
				f.Until(b.name, func() bool { return b.until(f) })
				if person.Running() && !hasEnded(f) && b.name != "hangs up" {
					person.leaves()
				}
				f.write(filepath.Join(f.Work, "go"), "")
				f.Until("the verdict", func() bool { return len(f.outbox()) > 0 })
				f.sendAs("the next one")
				f.Until("the next one is done", func() bool { return len(f.outbox()) > 1 })
				f.doneOnce("work", "done", 2)
				f.doneOnce("the next one", "ok", 1)
				if n := f.runs(); n != b.runs+2 {
					t.Errorf("%d checks, want %d", n, b.runs+2)
				}
				t.Logf("sessions ended by %q", f.ends())
			})
		})
	}
}

// runs is how many checks have begun.
func (f *fleet) runs() int {
	data, _ := os.ReadFile(filepath.Join(f.Work, "runs"))
	return strings.Count(string(data), "x")
}

// sendAs sends a prompt that is its own id.
func (f *fleet) sendAs(prompt string) { f.t.Helper(); f.must(prompt, "send", "a", "-", "--id", prompt) }

// doneOnce checks that a prompt of sendAs was handed over once for each of its iterations, and is
// done at its first attempt, by a verdict about the last one.
func (f *fleet) doneOnce(prompt, reply string, iterations int) {
	f.t.Helper()
	given := 0
	for _, p := range f.prompts() {
		if p == prompt || strings.HasSuffix(p, "\n\n"+prompt) {
			given++
		}
	}
	if given != iterations {
		f.t.Errorf("%q was handed over %d times, want %d: %q", prompt, given, iterations, f.prompts())
	}
	done := slices.DeleteFunc(f.outbox(), func(d promise.Reply) bool { return d.ID != prompt })
	if len(done) != 1 || done[0].Verdict == nil || done[0].Verdict.Iteration != iterations || done[0].Attempt != 1 || done[0].Reply != reply {
		f.t.Errorf("%q is done: %+v", prompt, done)
	}
	if dead := f.dead(); len(dead) > 0 {
		f.t.Errorf("dead letters: %+v", dead)
	}
}
