package proving

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
)

// TestAChangeRightAfterALookIsSeen: a record that was written a moment before it was seen
// may have been written again in the same tick, and look the same. It is looked at again.
func TestAChangeRightAfterALookIsSeen(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		record := inbox.FlightFiles(l.agent.Inbox)[0]
		now := time.Now()
		if err := os.Chtimes(record, now, now); err != nil {
			t.Fatal(err)
		}
		var seen sight
		seen.changed(l.agent)
		time.Sleep(time.Minute)
		if !seen.changed(l.agent) {
			t.Error("a record that was seen right after it was written is taken for unchanged")
		}
		if seen.changed(l.agent) {
			t.Error("a record that nobody has touched for a minute has changed")
		}
	})
}

// TestAVerdictThatIsNeverAwaitedIsTold: a queue that awaits another verdict each time it
// is asked is not asked without end and without a word.
func TestAVerdictThatIsNeverAwaitedIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		r := &run{Desk: New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler)}), Case: Case{Key: "a-1"}}
		s := subject{agent: l.agent, flight: l.flight(), book: l.book()}
		for i := range mostStale + 1 {
			v := ledger.Verdict{Delivery: s.flight.DeliveryID, Check: s.flight.Check + 1, Iteration: 1}
			_, _, err := r.apply(l.t.Context(), s, &v)
			if told := errors.Is(err, inbox.ErrStale); told != (i == mostStale) {
				t.Errorf("time %d: %v", i+1, err)
			}
		}
	})
}

// TestAnEntryThatCannotBeSetAsideIsTold: a queue that awaits another check each time is
// not asked to set an entry aside without end, and nothing of it is left.
func TestAnEntryThatCannotBeSetAsideIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		r := &run{Desk: New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler)}), Case: Case{Key: "a-1"}}
		f := *l.flight()
		f.Check++
		for i := range mostStale + 1 {
			err := r.setAside(l.t.Context(), subject{agent: l.agent, flight: &f})
			if told := errors.Is(err, inbox.ErrStale); told != (i == mostStale) {
				t.Errorf("time %d: %v", i+1, err)
			}
		}
		if all, err := ledger.Asides(l.state, "a-1"); len(all) != 0 || err != nil {
			t.Errorf("%v, %v", all, err)
		}
	})
}
