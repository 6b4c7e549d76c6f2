package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// whileAside is what happens while an entry waits aside for a person.
type whileAside struct {
	name string
	does func(f *fleet, s *scheduler)
}

func whilesAside() []whileAside {
	return []whileAside{
		{"nothing", func(*fleet, *scheduler) {}},
		{"the scheduler is killed", func(f *fleet, s *scheduler) {
			_ = s.cmd.Process.Kill()
			<-s.done
			f.start()
		}},
		{"all is started anew", func(f *fleet, s *scheduler) {
			s.stop()
			f.start()
		}},
	}
}

// TestWhatWaitsAsideGoesOnInItsConversation: the entries behind it are done meanwhile. A
// rejection takes it up again in its own conversation, as a second iteration, and a yes
// ends it without a session.
func TestWhatWaitsAsideGoesOnInItsConversation(t *testing.T) {
	t.Parallel()
	for _, w := range testbed.SampleOf(t, whilesAside(), 3) {
		t.Run(w.name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) { w.play(t, c) })
		})
	}
}

func (w whileAside) play(t *testing.T, c client) {
	f := newFleet(t, c, []string{`until: {check: ["true"], approve: [release], aside: true}`})
	f.turns(
		turn{match: "too short", steps: []script.Step{say("a longer PLUM")}},
		turn{match: "write of PLUM", steps: []script.Step{say("PLUM")}},
		turn{match: "", steps: []script.Step{say("done")}},
	)
	f.sendAs("write of PLUM")
	s := f.start()
	f.Until("the question", func() bool { return f.asks() != "" })
	first := f.asks()
	f.must("the next one", "send", "a", "-", "--id", "the next one", "--until-check", "true")
	f.Until("the next one is done", func() bool { return len(f.outbox()) == 1 })
	f.Until("the session's end", func() bool { return f.session().Phase == hook.Ended })
	w.does(f, s)
	n := f.requests()
	f.must("", "approval", "reject", first, "--note", "too short")
	f.Until("it is asked about again", func() bool { id := f.asks(); return id != "" && id != first })
	f.must("", "approval", "approve", f.asks())
	f.must("the last one", "send", "a", "-", "--id", "the last one", "--until-check", "true")
	f.Until("the last one is done", func() bool { return len(f.outbox()) == 3 })

	var done []string
	for _, d := range f.outbox() {
		if d.Attempt != 1 || d.Verdict == nil {
			t.Errorf("done: %+v", d)
			continue
		}
		done = append(done, fmt.Sprintf("%s: %s, %d", d.ID, d.Reply, d.Verdict.Iteration))
	}
	slices.Sort(done[1:]) // what is sent while a yes is applied may be done before it
	if want := []string{"the next one: done, 1", "the last one: done, 1", "write of PLUM: a longer PLUM, 2"}; !slices.Equal(done, want) {
		t.Errorf("done: %q, want %q", done, want)
	}
	if dead := f.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %+v", dead)
	}
	if !c.real {
		return
	}
	if more := f.requests() - n; more != 2 {
		t.Errorf("%d requests after the rejection, want one for each of two turns", more)
	}
	for _, r := range f.API.Requests() {
		asked := strings.Join(r.Prompts(), "|")
		if strings.Contains(asked, "too short") && r.Copies("PLUM") < 2 {
			t.Errorf("it goes on without the turn before: %q", r.Texts())
		}
	}
}
