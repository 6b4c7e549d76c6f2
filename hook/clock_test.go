package hook

import (
	"fmt"
	"testing"
	"time"

	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// setClock makes it look as if the wall clock had been set by d.
func (l *lab) setClock(d time.Duration) {
	l.t.Helper()
	clienttest.SetClock(l.t, d, l.home, l.transcript)
}

// Finished work came again when the clock had been set back meanwhile: the Stop
// that acknowledges it was taken for one that was called before, and the
// transcript's proof for an older one.
func TestAClockThatIsSetRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, d := range clienttest.ClockSteps {
		t.Run(fmt.Sprint("the next Stop, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", nil)
			l.setClock(d)
			l.handsOver("three", fields{"stop_hook_active": true})
			if n := len(l.replies()); n != 2 {
				t.Errorf("%d replies\n%s", n, l.log())
			}
		})
		t.Run(fmt.Sprint("the transcript, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", nil)
			clienttest.Append(t, l.transcript, `{"timestamp":"`+time.Now().Format(time.RFC3339Nano)+`",`+clienttest.UserLine(clienttest.Feedback + "[x hook]: two")[1:])
			l.setClock(d)
			l.handsOver("three", fields{"prompt_id": "P2"})
		})
		t.Run(fmt.Sprint("recovered, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two"})
			l.handsOver("two", nil)
			clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: two"))
			l.setClock(d)
			if a := handover.Arrived(&l.flight().Given); a != queue.Seen {
				t.Errorf("arrived: %v", a)
			}
		})
	}
}

// What a session's record says has passed is what has passed.
func TestAClockThatIsSetLetsNoTimePass(t *testing.T) {
	t.Parallel()
	for _, d := range clienttest.ClockSteps {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
			l := newLab(t, persistent, func(r *Record) {
				r.StartedAt, r.Since, r.TypedAt = ago(time.Hour), ago(10*time.Minute), ago(time.Minute)
				r.Work = &Work{DeliveryID: "d", Since: ago(5 * time.Minute)}
				r.Ruling = &Ruling{Why: EndDrained, At: ago(time.Second)}
			})
			for range 3 { // each reader writes it again
				l.setClock(d)
				l.change(func(*Record) {})
			}
			r := l.record()
			for name, c := range map[string]struct {
				at   time.Time
				want time.Duration
			}{
				"started": {r.StartedAt, time.Hour}, "since": {r.Since, 10 * time.Minute}, "typed": {r.TypedAt, time.Minute},
				"work": {r.Work.Since, 5 * time.Minute}, "ruled": {r.Ruling.At, time.Second},
			} {
				if got := time.Since(c.at); got < c.want-time.Second || got > c.want+time.Minute {
					t.Errorf("%s %s ago, want %s", name, got, c.want)
				}
			}
			if !r.BoundAt.IsZero() {
				t.Errorf("bound at %s", r.BoundAt)
			}
		})
	}
}

// A person who has typed hushes the queue for as long as before.
func TestAClockThatIsSetBackHushesNoLonger(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"}, persistent, func(r *Record) { r.Policy.TypingPause = 2 * time.Second })
	l.change(func(r *Record) { r.TypedAt = time.Now() })
	l.setClock(-time.Hour)
	if r := ended(t, l.wait()); r.status != 2 || r.stderr != "two" {
		t.Errorf("%+v\n%s", r, l.log())
	}
}
