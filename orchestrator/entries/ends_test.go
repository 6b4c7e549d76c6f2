package entries_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// ends returns the prompts and numbers of what is done, or dead.
func (r rig) ends(as queue.State) (all []string) {
	r.Helper()
	for _, e := range get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Ends(v, "a", as, 0, 99) }) {
		all = append(all, fmt.Sprint(e.N, " ", e.Prompt))
	}
	return all
}

// Ends have numbers in the order in which they were committed, whatever the clock says; what is
// dead no more has none, and is counted.
func TestEndsAreNumberedInTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one", "two", "three", "four")
	now := noon
	for _, end := range []string{"ack", "drop", "drop", "ack"} {
		now = now.Add(-time.Hour)
		g := get(r, func(v *store.View) ([]queue.Entry, error) { return entries.Queued(v, "a", 1) })[0]
		r.do(func(c *store.Change) error {
			if end == "drop" {
				_, _, err := entries.Drop(c, "a", now, g.Delivery)
				return err
			}
			given, err := entries.Offer(c, "a", queue.Handover{Session: "s1", At: now})
			if err == nil {
				_, err = entries.Acknowledge(c, entries.RefOf(&given.Entry), queue.Reply{Session: "s1", Text: "ok", At: now})
			}
			return err
		})
	}
	if done, dead := r.ends(queue.Done), r.ends(queue.Dead); !slices.Equal(done, []string{"1 one", "2 four"}) || !slices.Equal(dead, []string{"1 two", "2 three"}) {
		t.Errorf("done %q, dead %q", done, dead)
	}
	latest := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Done(v, "a", time.Time{}, 1) })
	if len(latest) != 1 || latest[0].Prompt != "four" || latest[0].Reply.Text != "ok" || latest[0].Handover.Session != "s1" {
		t.Errorf("%+v", latest)
	}
	if since := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Done(v, "a", noon.Add(-2*time.Hour), 9) }); len(since) != 1 || since[0].Prompt != "one" {
		t.Errorf("%+v", since)
	}
	two := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Dead(v, "a", 0, 1) })[0]
	r.do(func(c *store.Change) error {
		_, _, err := entries.Retry(c, "a", noon, two.Delivery)
		return err
	})
	if e := get(r, func(v *store.View) (*entries.Ended, error) { return entries.EndOf(v, two.Key) }); e != nil {
		t.Errorf("%+v", e)
	}
	if e := get(r, func(v *store.View) (*entries.Ended, error) { return entries.EndOf(v, latest[0].Key) }); e == nil || e.N != 2 {
		t.Errorf("%+v", e)
	}
	r.do(func(c *store.Change) error {
		_, _, err := entries.Drop(c, "a", now, two.Delivery)
		return err
	})
	r.do(func(c *store.Change) error {
		_, err := entries.Purge(c, "a", noon, 1)
		return err
	})
	if dead := r.ends(queue.Dead); !slices.Equal(dead, []string{"3 two"}) {
		t.Errorf("dead %q", dead)
	}
	if n := get(r, func(v *store.View) (entries.Counts, error) { return entries.CountsOf(v, "a") }); n != (entries.Counts{Done: 2, Dead: 3, Gone: 2}) {
		t.Errorf("%+v", n)
	}
}

// TestWhatIsGivenAgainIsMarked: of an entry whose store is older than what was done nothing tells
// whether a session has had it.
func TestWhatIsGivenAgainIsMarked(t *testing.T) {
	t.Parallel()
	for _, lane := range []queue.Lane{queue.Normal, queue.Urgent, queue.Returning} {
		for _, state := range queue.States {
			e := queue.Entry{State: state, Lane: lane}
			if state.IsInFlight() {
				e.Attempt, e.Untouched = 1, true
			}
			again, err := e.GiveAgain()
			if refused := state.HasEnded() || state == queue.Suspended; refused != (err != nil) {
				t.Errorf("%s: %v", state, err)
			} else if refused {
				continue
			}
			if state == queue.Later {
				again, _ = again.Wake(7)
			}
			if again, err = again.Offer(queue.Handover{}); err != nil || !again.IsRepeat() {
				t.Errorf("%s in lane %d: %+v, %v", state, lane, again, err)
			}
		}
	}
}
