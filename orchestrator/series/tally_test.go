package series

import (
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
)

// TestABatchCopiesWhatItIsAbout: each batch of events copied what is known of all agents.
func TestABatchCopiesWhatItIsAbout(t *testing.T) {
	t.Parallel()
	c, now := NewCounter(), time.Now()
	keep := func(events ...journal.Event) *tally {
		t := c.tally(events)
		c.known.learn(t.known, events)
		return t
	}
	keep(
		journal.Event{Agent: "a", At: now, Kind: journal.Checked, Verdict: journal.Passed, Entry: "1"},
		journal.Event{Agent: "b", At: now, Kind: journal.Stopped, Done: "2"},
	)
	of := keep(journal.Event{Agent: "b", At: now, Kind: journal.Stopped, Done: "3"})
	if len(of.counted) != 1 || len(of.proven) != 0 || c.known.counted["b"] != 2 || len(c.known.named["b"]) != 2 || len(c.known.proven["a"]) != 1 {
		t.Errorf("%+v, and then %+v is known", of.known, c.known)
	}
	if c.tally([]journal.Event{{Agent: "a", At: now, Kind: journal.Ended}}); len(c.known.proven["a"]) != 1 {
		t.Error("what is not committed is known")
	}
	if keep(journal.Event{Agent: "a", At: now, Kind: journal.Ended}); len(c.known.proven) != 0 {
		t.Errorf("a session that has ended: %+v", c.known)
	}
}
