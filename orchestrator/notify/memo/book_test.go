package memo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

var at = time.UnixMilli(1793527200123)

// states are what a run has kept, one after the other.
func states() []*State {
	n := func(key string, of ...string) notice.Notice {
		return notice.Notice{Key: key, Event: notice.Happened, Kind: notice.GivenUp, Agent: "a", Urgent: true, At: at, Since: at, Over: at, Text: "t", Do: "d", Link: "l", Times: 2, Entry: "e", Reply: "r", To: "phone", Not: "desk", Of: of}
	}
	all := []*State{New(), New(), New(), New()}
	all[1].Told["a/held"] = &notice.Told{
		Fact:  notice.Fact{Key: "a/held", Agent: "a", Kind: "held", Urgent: true, Since: at, Text: "t", Do: "d", Link: "l", Slow: true, Once: true, To: "x", Not: "y", Of: "z", Quiet: true},
		First: at, At: at, Reminders: 2, Gone: at, Over: true, Returns: 3, Pending: []string{"one", "two"}, Missed: 4, Happens: true, PendingOf: []string{"d1"},
	}
	all[1].Boxes["phone"] = &outbox.Box{
		Waiting: []outbox.Item{{Notice: n("k1", "d1", "d2"), Due: at}, {Notice: n("k2"), Due: at}}, Next: at, Failing: at, Why: "w", Arrived: at, Dropped: 5, Unnamed: true,
		Sending: &outbox.Message{Key: "k3+1", Made: at, Attempts: 6, Notices: []notice.Notice{n("k3", "d3"), n("k4")}},
	}
	all[1].Boxes["desk"] = &outbox.Box{}
	all[1].Marks["a"] = &Mark{Dead: time.Unix(0, 1793527200123456789), Reply: time.Unix(0, 5), ReplyID: "d"}
	all[1].Ping = &Ping{Since: at, Why: "no route"}
	all[1].Heads["a"], all[1].Heads["b"] = &Head{ID: "p", Since: at, Saved: true}, &Head{ID: "q", Since: at}
	for i := range mostReplied {
		all[1].Reply(fmt.Sprint("r", i))
	}
	// What waited is being sent, and others wait.
	all[2].Told["b/held"] = &notice.Told{Fact: notice.Fact{Key: "b/held"}, Pending: []string{"two"}}
	all[2].Boxes["phone"] = &outbox.Box{Waiting: []outbox.Item{{Notice: n("k5"), Due: at}}, Sending: &outbox.Message{Key: "k1", Made: at, Notices: []notice.Notice{n("k1", "d2")}}}
	all[2].Marks["a"] = &Mark{Dead: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	all[2].Replied, all[2].Before = slices.Clone(all[1].Replied), all[1].Before
	all[2].Reply("the last")
	return all
}

// TestWhatIsKeptIsReadAgain: after each save the store has the state, and nothing else, also
// after one of which nobody can say whether it was done.
func TestWhatIsKeptIsReadAgain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, t.TempDir())
	b, _, err := Open(t.Context(), s, at)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range slices.Concat(states(), states()) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Save(cancelled, state); err == nil {
			t.Fatal("it was saved by who had gone")
		}
		if i == 5 {
			b.saved = nil // nobody can say which rows are there
		}
		if err := b.Save(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		got, err := store.Get(t.Context(), s.Reader, Read)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range rowsOf(state) {
			if !maps.EqualFunc(rowsOf(got)[n], want, slices.Equal) {
				t.Errorf("state %d, %s:\n%v\nwant\n%v", i, tables[n].name, rowsOf(got)[n], want)
			}
		}
		if n := len(got.Replied); n > mostReplied || n > 0 && got.Replied[n-1] != state.Replied[n-1] {
			t.Errorf("state %d: %d replies, in another order", i, n)
		}
	}
}

// TestTheNewestMessagesAreKept, of each target.
func TestTheNewestMessagesAreKept(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, t.TempDir())
	log := func(keys ...string) {
		t.Helper()
		err := s.Write(t.Context(), func(c *store.Change) (err error) {
			for _, key := range keys {
				r := Record{At: at, Target: "desk", Outcome: outbox.GivenUp, Key: key, Why: "x", Notices: []notice.Notice{{Key: "k", To: "desk", Entry: "e"}}}
				if key == "4" {
					r.Target, r.At = "phone", at.Add(time.Second)
				}
				err = errors.Join(err, Log(c, r))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	log("0", "1", "2")
	err := s.Write(t.Context(), func(c *store.Change) error {
		_, err := c.Do(`UPDATE messages SET n = n + $1 WHERE n = 3`, mostRecords-2) // as if there had been as many
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	log("3", "4", "5")
	err = s.Read(t.Context(), func(v *store.View) error {
		all, err := Records(v, 100, nil)
		desk, err2 := Records(v, 2, []string{"desk", "nobody"})
		failed, err3 := GivenUp(v, at.Add(time.Second))
		if len(all) != 4 || all[0].Key != "2" || all[3].Key != "5" || len(desk) != 2 || desk[0].Key != "3" || len(failed) != 1 || failed[0] != (Failure{"phone", 1, "x"}) {
			t.Errorf("%+v, %+v, %+v", all, desk, failed)
		}
		return errors.Join(err, err2, err3)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMarksOfAgentsThatAreGone are kept of the last thousand: each that a fleet ever had was
// kept for good.
func TestMarksOfAgentsThatAreGone(t *testing.T) {
	t.Parallel()
	s := New()
	for n := range mostGone + 7 {
		s.Marks[strconv.Itoa(n)] = &Mark{Dead: time.Unix(int64(n), 0)}
	}
	s.Forget(func(agent string) bool { return agent != "0" })
	if s.Marks["0"] == nil || s.Marks["6"] != nil || s.Marks["7"] == nil || len(s.Marks) != mostGone+1 {
		t.Errorf("%d are left", len(s.Marks))
	}
}
