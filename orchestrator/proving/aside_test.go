package proving

import (
	"log/slog"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// TestAVerdictStandsForWhatIsSetAside: of an entry that was about to be set aside, and was
// answered and finished in its place, only the note was missing that it was.
func TestAVerdictStandsForWhatIsSetAside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		f := l.flight()
		r := run{Desk: New(Options{StateDir: l.state})}
		s := subject{agent: l.agent, flight: f, until: l.agent.Until, book: l.book()}
		v := s.verdict(ledger.Course{})
		v.Passed, v.By = true, "check, release by a person"
		err := ledger.KeepAside(l.state, "a-1", ledger.Aside{Flight: f.AsideSince(time.Now())})
		if err == nil {
			err = s.book.Keep(ledger.Course{Delivery: f.DeliveryID, From: ledger.FromAgent, Verdict: &v})
		}
		if err == nil {
			err = queue.Apply(l.t.Context(), l.agent, *r.inForm(s, &v))
		}
		if err != nil {
			l.t.Fatal(err)
		}
		var told []journal.Event // the scheduler is killed before it is noted that this is applied
		desk := New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) { told = append(told, e) }})
		w, err := desk.Tend(l.t.Context(), l.agent, "a-1")
		if err != nil || w.Returning > 0 || len(w.Deliveries) > 0 {
			l.t.Errorf("it waits or returns: %+v, %v", w, err)
		}
		for _, e := range told {
			if e.Kind == journal.Forged || e.Verdict == "unproven" {
				l.t.Errorf("the journal says %+v", e)
			}
		}
		if left, err := ledger.Asides(l.state, "a-1"); len(left) > 0 || err != nil {
			l.t.Errorf("still set aside: %+v, %v", left, err)
		}
		if n := l.replies(); n != 1 {
			l.t.Errorf("%d records in the outbox", n)
		}
	})
}
