package hook

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// unanswered is how many requests the scheduler has not answered.
func (l *lab) unanswered() int {
	l.live.asks.mu.Lock()
	defer l.live.asks.mu.Unlock()
	return len(l.live.asks.sent)
}

// TestAToolDoesNotWaitForASchedulerThatStandsStill: it runs after a while, once, and that it has is
// recorded when the scheduler goes on. What moves no entry is answered from memory.
func TestAToolDoesNotWaitForASchedulerThatStandsStill(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.stopped.Lock()
	if r := l.event(client.PreToolUse, fields{"tool_name": "Bash"}); r.status != 0 || r.took < tellPatience {
		t.Errorf("the first tool: %+v", r)
	}
	for range 3 {
		l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
	}
	l.quietly(client.Notification, fields{"notification_type": "idle_prompt"})
	if got := l.event(client.PermissionRequest, fields{"tool_name": "Bash"}); got.stdout == "" {
		t.Errorf("a permission: %+v", got)
	}
	if n := l.unanswered(); n != 1 {
		t.Errorf("%d requests", n)
	}
	if g := l.live.InFlight(); g == nil || g.State != queue.Started {
		t.Errorf("the session goes by %+v", g)
	}
	l.stopped.Unlock()
	until(t, "the tool to be recorded", func() bool { return l.state() == queue.Started })
	l.handsOver("two", nil)
}

// TestAStopWaitsForASchedulerThatStandsStill.
func TestAStopWaitsForASchedulerThatStandsStill(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.stopped.Lock()
	time.AfterFunc(tellPatience+time.Second, l.stopped.Unlock)
	if r := l.event(client.Stop, nil); r.status != 2 || r.stderr != "two" || r.took < tellPatience {
		t.Errorf("%+v\n%s", r, l.log())
	}
	if n := len(l.replies()); n != 1 {
		t.Errorf("%d acknowledged", n)
	}
}

// TestWhatIsAnsweredTooLateIsTakenBack: the entry that came with the answer was handed to nobody,
// and uses up no attempt; the one before is done.
func TestWhatIsAnsweredTooLateIsTakenBack(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.stopped.Lock()
	cmd := l.stops(nil)
	until(t, "the Stop to ask", func() bool { return l.unanswered() == 1 })
	_ = cmd.Process.Kill()
	until(t, "the shim to have done with it", func() bool { _, is := l.over.Load(cmd.Process.Pid); return is })
	l.stopped.Unlock()
	if err := l.live.asks.settle(t.Context(), testbed.Patience); err != nil {
		t.Fatal(err)
	}
	if n := len(l.replies()); n != 1 {
		t.Errorf("%d acknowledged", n)
	}
	l.handsOver("two", fields{"prompt_id": "P2"})
	if f, r := l.flight(), l.record(); f.Attempt != 1 || r.Acknowledged != 1 || r.Work == nil || r.Work.DeliveryID != f.Delivery {
		t.Errorf("in flight %+v, record %+v", f, r)
	}
}

// TestASchedulerThatIsGoneEndsATurn: nothing is handed over, and what the session record and the
// transcript show proves to the next one that the turn was over.
func TestASchedulerThatIsGoneEndsATurn(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.stopped.Lock() // it was killed before it could answer
	time.AfterFunc(100*time.Millisecond, l.live.Unanswered)
	l.quietly(client.Stop, fields{"last_assistant_message": "did one"})
	r := l.record()
	if r.Phase != Unattended || r.Acknowledged != 0 || r.Work == nil {
		t.Errorf("record: %+v", r)
	}
	path := clienttest.Transcript(t, `{"type":"user","promptId":"`+r.PromptID+`"}`, clienttest.StopLine(`{"command":"heartbeat-stop hook"}`, ""))
	l.change(func(r *Record) { r.Transcript = path })
	delivery := l.live.InFlight().Delivery
	if said := Finished(l.home, "S", delivery, time.Now()); said == nil || said.Text != "did one" {
		t.Errorf("it has said %+v", said)
	}
	l.quietly(client.UserPromptSubmit, fields{"prompt": "a person goes on", "prompt_id": "P2"})
	if said := Finished(l.home, "S", delivery, time.Now()); said != nil {
		t.Errorf("another turn has begun, and it has finished with %+v", said)
	}
	l.stopped.Unlock()
}

// TestOneRequestAcknowledgesAndTakesTheNext.
func TestOneRequestAcknowledgesAndTakesTheNext(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	before := l.live.asks.n
	l.handsOver("two", nil)
	if n := l.live.asks.n - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestAVerdictThatPassesWhileNoHookWaits is heeded with the next event.
func TestAVerdictThatPassesWhileNoHookWaits(t *testing.T) {
	t.Parallel()
	l, cmd := claimed(t)
	end(t, cmd)
	l.judges(queue.Verdict{Passed: true})
	l.quietly(client.Notification, fields{"notification_type": "idle_prompt"})
	if r := l.record(); r.Acknowledged != 1 || r.Work != nil {
		t.Errorf("record: %+v", r)
	}
}

// end has a hook that waits end.
func end(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestARefusalKeepsWhatItMatches over the wire.
func TestARefusalKeepsWhatItMatches(t *testing.T) {
	t.Parallel()
	for _, is := range []error{queue.ErrStale, queue.ErrState, queue.ErrUnproven} {
		var a wire.Answer
		a.Refuse(errors.Join(is, errors.New("why")))
		if err := a.Err(); !errors.Is(err, is) || err.Error() != a.Why {
			t.Errorf("%v: %v", is, err)
		}
	}
	if err := (&wire.Answer{}).Err(); err != nil {
		t.Error(err)
	}
}
