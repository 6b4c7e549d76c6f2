package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
)

// TestWhatWaitsAsideHoldsUpNothing: of a request whose entry was set aside after it was
// made, doctor said that nothing starts before, and status that the agent works.
func TestWhatWaitsAsideHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ aside, keeps bool }{
		"its entry is in flight":           {false, true},
		"its entry was set aside later on": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var f *inbox.InFlight
			r.queue(func(q *inbox.Held) error {
				_, err := q.Append(context.Background(), inbox.Letter{ID: "one", Source: "send", Prompt: "write one"})
				r.must(err)
				e, err := q.Next()
				r.must(err)
				_, err = q.Offer(e, inbox.Offering{Session: "S", Checked: true})
				r.must(err)
				_, err = q.Advance(inbox.Started, "")
				r.must(err)
				f, err = q.Check(inbox.Acknowledgement{Session: "S", Now: time.Now()})
				if err == nil && c.aside {
					_, err = q.SetAside(f.DeliveryID, f.Check, time.Now())
				}
				return err
			})
			ask := approval.Request{Agent: "triage", Key: "triage", Question: "release?", Entry: f.DeliveryID, Name: "release"}
			r.asks(ask)
			got := find(r.findings(), "approval")
			if got == nil {
				t.Fatal("it is not said")
			}
			if keeps := strings.Contains(got.Why, "stands still"); keeps != c.keeps || strings.Contains(got.Seen, "aside") == c.keeps {
				t.Errorf("%s: %s", got.Seen, got.Why)
			}
		})
	}
}
