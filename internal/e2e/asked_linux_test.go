package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// whileAsked is what happens to an agent that has asked for an approval.
type whileAsked struct {
	name string
	// inTurn is true where it happens in the turn in which it has asked, and false where
	// its session has ended.
	inTurn bool
	does   func(f *fleet, s *scheduler)
	// stopped is true where no scheduler is left: the next one begins after the answer.
	stopped bool
	// interrupted is true where the prompt in work did not come to its end.
	interrupted bool
}

// killsAll ends the scheduler, the shim and the client, in this order, as the kernel
// does.
func killsAll(f *fleet, s *scheduler) {
	r := f.session()
	_ = s.cmd.Process.Kill()
	_ = kill(r.Shim, syscall.SIGKILL)
	_ = kill(r.Client, syscall.SIGKILL)
	<-s.done
}

func whilesAsked() []whileAsked {
	return []whileAsked{
		{name: "nothing", does: func(*fleet, *scheduler) {}},
		{name: "everything is killed", does: killsAll, stopped: true},
		{name: "everything is killed in the turn", does: killsAll, stopped: true, inTurn: true, interrupted: true},
		{name: "the client is killed in the turn", inTurn: true, interrupted: true, does: func(f *fleet, _ *scheduler) {
			kills(func(s *seen) int { return s.Client })(f, nil)
		}},
		{name: "a person types in the turn", inTurn: true, does: person(submits("LOOK AT THIS, TOO"))},
		{name: "a person interrupts the turn", inTurn: true, interrupted: true, does: person(func(_ *fleet, p *Terminal) { p.Type("\x1b") })},
	}
}

// person has somebody do something who joins the session.
func person(does func(f *fleet, p *Terminal)) func(f *fleet, _ *scheduler) {
	return func(f *fleet, _ *scheduler) {
		p := f.join()
		f.Until("the person is noted", func() bool { return f.session().Attached == 1 })
		does(f, p)
		time.Sleep(time.Second) // the client reads its keys
		if p.Running() {
			p.leaves()
		}
	}
}

// TestTheAnswerToWhatAnAgentHasAsked comes once, as the next turn of the conversation in
// which it has asked, with all that was said there before, whatever has become of that
// turn, its session and the scheduler meanwhile.
func TestTheAnswerToWhatAnAgentHasAsked(t *testing.T) {
	t.Parallel()
	for _, w := range testbed.SampleOf(t, whilesAsked(), 6) {
		t.Run(w.name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) { w.play(t, c) })
		})
	}
}

func (w whileAsked) play(t *testing.T, c client) {
	f := newFleet(t, c, []string{"on-orphan: retry"})
	f.named()
	f.write(filepath.Join(f.Work, "p.sql"), "drop table t;")
	f.turns(
		turn{match: "attempt 2", steps: []script.Step{say("I have asked before")}},
		turn{match: "the word is PLUM", steps: []script.Step{say("I remember PLUM")}},
		turn{match: "drop the table", steps: []script.Step{
			bash(`heartbeat approval ask "Drop table t?" --category destroy --payload p.sql`),
			bash("while [ ! -e go ]; do sleep 0.1; done"), say("I have asked"),
		}},
		turn{match: "It was approved", steps: []script.Step{say("dropped")}},
	)
	for _, p := range []string{"the word is PLUM", "drop the table", "the next one"} {
		f.sendAs(p)
	}
	s := f.start()
	var id string
	f.Until("the question", func() bool { id = f.asks(); return id != "" })
	ended := func() bool { return f.session().Phase == hook.Ended }
	if w.inTurn {
		f.phase(hook.Turn)
		w.does(f, s)
	}
	f.write(filepath.Join(f.Work, "go"), "")
	f.Until("the session's end", func() bool { return w.inTurn && w.stopped || ended() })
	if !w.inTurn {
		w.does(f, s)
	}
	if shown := f.must("", "approval", "show", id); !strings.Contains(shown, "drop table t;") || !strings.Contains(shown, "destroy") {
		t.Errorf("the person is shown:\n%s", shown)
	}
	n := f.requests()
	time.Sleep(2 * time.Second)
	if f.requests() != n || f.agentState() != "held" && !w.stopped {
		t.Errorf("%d requests while it waits, and the agent is %s", f.requests()-n, f.agentState())
	}
	f.must("", "approval", "approve", id, "--note", "at night")
	if w.stopped {
		f.start()
	}
	f.Until("the next one is done", func() bool {
		done := f.outbox()
		return len(done) > 0 && done[len(done)-1].ID == "the next one"
	})
	f.answered(w, id)
}

// named lets what runs in a session call our program by its name, as where it is
// installed.
func (f *fleet) named() {
	f.t.Helper()
	bin := filepath.Join(f.Dir, "bin")
	if err := os.Symlink(f.bin, bin); err != nil {
		f.t.Fatal(err)
	}
	f.Setenv("PATH=" + bin + ":" + os.Getenv("PATH"))
}

// asks is the id of the request that waits, or "".
func (f *fleet) asks() string {
	f.t.Helper()
	var envelope struct {
		Data struct {
			Approvals []struct{ ID, State string }
		}
	}
	out := f.must("", "approval", "-o", "json", "--heartbeat-ms", "0")
	if err := json.Unmarshal([]byte(out), &envelope); err != nil {
		f.t.Fatalf("approval: %v: %s", err, out)
	}
	for _, a := range envelope.Data.Approvals {
		if a.State == "asked" {
			return a.ID
		}
	}
	return ""
}

// answered checks what the agent got.
func (f *fleet) answered(w whileAsked, id string) {
	t := f.t
	t.Helper()
	var answers []string
	for _, p := range f.prompts() {
		if strings.Contains(p, "It was approved by") {
			answers = append(answers, p)
		}
	}
	if len(answers) != 1 || !strings.Contains(answers[0], id) || !strings.Contains(answers[0], "at night") {
		t.Errorf("the agent was told %q, want the answer once", answers)
	}
	var ids []string
	for _, d := range f.outbox() {
		ids = append(ids, d.ID)
		// The stand-in keeps no conversation of a turn in which it is killed: the first session reaches nobody.
		unkept := w.interrupted && !f.client.real && d.ID == "approval-"+id && d.Attempt == 2
		if again := w.interrupted && d.ID == "drop the table"; d.Attempt != 1 && !again && !unkept || again && d.Attempt != 2 {
			t.Errorf("%s was done at attempt %d", d.ID, d.Attempt)
		}
	}
	want := []string{"the word is PLUM", "drop the table", "approval-" + id, "the next one"}
	if w.interrupted {
		want[1], want[2] = want[2], want[1]
	}
	if dead := f.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %+v", dead)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("done: %q, want %q", ids, want)
	}
	if !f.client.real {
		return
	}
	for _, r := range f.API.Requests() {
		if strings.Contains(strings.Join(r.Prompts(), "|"), "It was approved by") && (r.Copies("the word is PLUM") == 0 || r.Copies("I remember PLUM") == 0 || r.Copies("asked (") == 0 && !w.interrupted) {
			t.Errorf("the answer comes without the turns before: %q", r.Texts())
		}
	}
}
