package hook

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

func checked(r *Record) { r.Policy.Checked = true }

// takesFirst begins a session with the first entry, which is taken.
func (l *lab) takesFirst() {
	l.t.Helper()
	flight := l.offerFirst()
	l.quietly(client.SessionStart, fields{"source": "startup"})
	l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt)})
}

// claims starts a Stop hook and returns once it waits for a verdict.
func (l *lab) claims(more fields) *exec.Cmd {
	l.t.Helper()
	return l.stopsUntil(Checking, more)
}

// claimed is a session whose first entry is claimed to be done: its Stop hook waits for the
// verdict.
func claimed(t testing.TB) (*lab, *exec.Cmd) {
	t.Helper()
	l := newLab(t, checked)
	l.append("mend it")
	l.takesFirst()
	return l, l.claims(nil)
}

// judges applies a verdict about the check that is awaited, as the scheduler does.
func (l *lab) judges(v queue.Verdict, shown ...string) {
	l.t.Helper()
	f := l.flight()
	if f == nil || f.State != queue.Checking {
		l.t.Fatalf("in flight %+v", f)
	}
	v.Check = f.Check
	if err := l.queue.Change(f.Delivery, func(e queue.Entry) (queue.Entry, error) { return e.Judge(v, time.Now()) }); err != nil {
		l.t.Fatal(err)
	}
	l.queue.Show(f.Delivery, queue.Shown{Output: strings.Join(shown, "")})
	l.moved()
}

// TestAnEntryIsHandedOverUntilItIsProven, in one session and one conversation.
func TestAnEntryIsHandedOverUntilItIsProven(t *testing.T) {
	t.Parallel()
	l := newLab(t, checked)
	l.append("mend it", "next")
	l.takesFirst()

	cmd := l.claims(fields{"last_assistant_message": "done!"})
	if f := l.flight(); f.State != queue.Checking || f.Reply.Text != "done!" || f.Attempt != 1 || l.record().Work == nil {
		t.Fatalf("%+v", f)
	}
	l.judges(queue.Verdict{Most: 3}, "two tests fail")
	again := "[heartbeat: iteration 2 of 3 of this entry. It is not proven to be done. What its check said last:]\n\n" +
		"two tests fail\n\n[heartbeat: the entry:]\n\nmend it"
	if r := ended(t, cmd); r.status != 2 || r.stderr != again {
		t.Fatalf("%+v\n%s", r, l.log())
	}
	if r := l.record(); r.Work.Iteration != 2 || r.Work.Attempt != 1 || r.Continuations != 1 || r.Acknowledged != 0 {
		t.Errorf("%+v", r)
	}

	cmd = l.claims(fields{"stop_hook_active": true, "last_assistant_message": "done, really"})
	l.judges(queue.Verdict{Passed: true})
	if r := ended(t, cmd); r.status != 2 || r.stderr != "next" {
		t.Fatalf("%+v\n%s", r, l.log())
	}
	done := l.replies()
	if r := l.record(); r.Acknowledged != 1 || r.Continuations != 1 || len(done) != 1 || done[0] != "done, really" {
		t.Errorf("%+v %+v", r, done)
	}

	// Given up, and nothing is left: drained.
	cmd = l.claims(fields{"stop_hook_active": true})
	l.judges(queue.Verdict{GiveUp: queue.MaxTime})
	if r := ended(t, cmd); r.status != 0 || r.stderr != "" {
		t.Fatalf("%+v\n%s", r, l.log())
	}
	if r := l.record(); r.Acknowledged != 1 || r.Work != nil || r.Continuations != 0 || r.Ruling == nil || r.Ruling.Why != EndDrained {
		t.Errorf("%+v", r)
	}
}

// TestAVerdictWaitsForTheNextStop if the hook that waited for it was told to end.
func TestAVerdictWaitsForTheNextStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict queue.Verdict
		want    string // what the next Stop hands over
		done    int
	}{
		"passed":   {queue.Verdict{Passed: true}, "next", 1},
		"not":      {queue.Verdict{}, "mend it", 0},
		"given up": {queue.Verdict{GiveUp: queue.NoProgress}, "next", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, checked)
			l.append("mend it", "next")
			l.takesFirst()
			cmd := l.claims(nil)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if r := ended(t, cmd); r.status != -1 || r.stderr != "" {
				t.Fatalf("%+v", r)
			}
			until(t, "the hook to be gone", func() bool {
				r := l.record()
				return r.Phase == Checking && r.Waiter == Process{}
			})
			l.judges(c.verdict)
			r := l.event(client.Stop, nil)
			if r.status != 2 || !strings.HasSuffix(r.stderr, c.want) {
				t.Fatalf("%+v\n%s", r, l.log())
			}
			if got := l.record().Acknowledged; got != c.done || len(l.replies()) != c.done {
				t.Errorf("%d acknowledged", got)
			}
			if undone := l.record().Undone; undone == 1 != (c.verdict.GiveUp != "") {
				t.Errorf("%d entries ended undone", undone)
			}
		})
	}
}

// TestATurnThatNobodyHandedOverVoidsTheCheck: its verdict would be about other work.
func TestATurnThatNobodyHandedOverVoidsTheCheck(t *testing.T) {
	t.Parallel()
	l, cmd := claimed(t)
	before := l.flight()
	l.quietly(client.UserPromptSubmit, fields{"prompt": "look at this, too", "prompt_id": "P2"})
	if r := ended(t, cmd); r.status != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if f, r := l.flight(), l.record(); f.State != queue.Started || r.Phase != Turn {
		t.Fatalf("%+v %+v", f, r)
	}
	void := queue.Verdict{Check: before.Check, Passed: true}
	if err := l.queue.Change(before.Delivery, func(e queue.Entry) (queue.Entry, error) { return e.Judge(void, time.Now()) }); err == nil {
		t.Error("the verdict of a void check counts")
	}
	cmd = l.claims(fields{"prompt_id": "P2"})
	if f := l.flight(); f.Check <= before.Check || f.Iteration != 1 {
		t.Errorf("%+v", f.Proving)
	}
	l.judges(queue.Verdict{Passed: true})
	if r := ended(t, cmd); r.status != 0 || len(l.replies()) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestACheckYieldsItsSlot, and stays in flight.
func TestACheckYieldsItsSlot(t *testing.T) {
	t.Parallel()
	l, cmd := claimed(t)
	l.change(func(r *Record) { r.Yield = true })
	if r := ended(t, cmd); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	if r, f := l.record(), l.flight(); r.Phase != Ending || r.Ruling.Why != EndReleased || f.State != queue.Checking {
		t.Errorf("%+v %+v", r, f)
	}
}

// TestAMarkedEntryIsChecked in a session of which not each is.
func TestAMarkedEntryIsChecked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.append("plain", `{"heartbeat":1,"checked":true,"id":"m","prompt":"marked"}`)
	l.takesFirst()
	l.handsOver("marked", nil)
	cmd := l.claims(fields{"stop_hook_active": true})
	if f := l.flight(); f.ID != "m" || len(l.replies()) != 1 {
		t.Fatalf("%+v", f)
	}
	l.judges(queue.Verdict{Passed: true})
	ended(t, cmd)
	if n := len(l.replies()); n != 2 {
		t.Error(n)
	}
}

// TestTheIterationOfAFormerSession is handed over by the session that finds it.
func TestTheIterationOfAFormerSession(t *testing.T) {
	t.Parallel()
	l, cmd := claimed(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	l.judges(queue.Verdict{})
	l.change(func(r *Record) { r.Session, r.Work, r.Phase = "S2", nil, Turn })
	if r := l.event(client.Stop, nil); r.status != 2 || !strings.Contains(r.stderr, "iteration 2 of this entry") {
		t.Fatalf("%+v\n%s", r, l.log())
	}
	if f := l.flight(); f.Handover.Session != "S2" || f.State != queue.Offered {
		t.Errorf("%+v", f)
	}
}

// TestAHookEndsWhereTheVerdictStays: killed beside a check, nothing is acknowledged without
// one, and the entry ends by it.
func TestAHookEndsWhereTheVerdictStays(t *testing.T) {
	t.Parallel()
	l, cmd := claimed(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	until(t, "the hook to be gone", func() bool { return l.record().Waiter == Process{} })
	for range 2 {
		if got, _ := l.recovers(queue.Interruption{Policy: queue.DeadLetterOrphan, Counts: true}); got != queue.LeftChecking {
			t.Fatal(got)
		}
	}
	if len(l.replies()) != 0 {
		t.Fatal("acknowledged without a verdict")
	}
	l.judges(queue.Verdict{Passed: true})
	if n := len(l.replies()); n != 1 || l.flight() != nil {
		t.Errorf("%d are done, in flight %+v", n, l.flight())
	}
}

// TestASessionWhoseWorkWasGivenUpHadSomethingQueued: it is not said that nothing was.
func TestASessionWhoseWorkWasGivenUpHadSomethingQueued(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Progress{
		"nothing was queued": {}, "nothing was done": {Undone: 1}, "": {Undone: 1, Acknowledged: 1},
	} {
		r := liveRecord(func(r *Record) { r.Progress = p })
		if r.Drained(noon); r.Ruling == nil || r.Ruling.Why != EndDrained || string(r.Ruling.Detail) != want {
			t.Errorf("%+v: %+v, want %q", p, r.Ruling, want)
		}
	}
}
