package awaited_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestASessionLeavesWhatOthersWaitFor: any session could end a person's wait for a reply, or
// put it off.
func TestASessionLeavesWhatOthersWaitFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, t.TempDir())
	at := time.Now().Truncate(time.Millisecond)
	asks := func(by, id string, late time.Duration, ends bool) (known bool, err error) {
		o := awaited.Order{Reply: awaited.Reply{Agent: "a", ID: id, Target: "phone", At: at.Add(late)}, By: by, Ends: ends}
		err = s.Write(t.Context(), func(c *store.Change) error { known, err = o.Ask(c); return err })
		return known, err
	}
	waits := func() (all string) {
		replies, err := store.Get(t.Context(), s.Reader, awaited.All)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range replies {
			all += fmt.Sprintf("%s+%v ", r.ID, r.At.Sub(at))
		}
		return all
	}
	for i, tt := range []struct {
		by, id string
		late   time.Duration
		ends   bool
		known  bool
		err    error
		want   string
	}{
		{by: "", id: "1", want: "1+0s "},
		{by: "a", id: "1", late: time.Hour, known: true, want: "1+0s "},
		{by: "a", id: "1", ends: true, known: true, err: awaited.ErrOthers, want: "1+0s "},
		{by: "b", id: "2", want: "1+0s 2+0s "},
		{by: "b", id: "2", late: time.Second, known: true, want: "1+0s 2+1s "},
		{by: "a", id: "2", ends: true, known: true, err: awaited.ErrOthers, want: "1+0s 2+1s "},
		{by: awaited.Nobody, id: "2", ends: true, known: true, err: awaited.ErrOthers, want: "1+0s 2+1s "},
		{by: "a", id: "3", ends: true, want: "1+0s 2+1s "},
		{by: "b", id: "2", ends: true, known: true, want: "1+0s "},
		{by: "b", id: "2", want: "1+0s 2+0s "},
		{by: "", id: "2", late: time.Minute, known: true, want: "1+0s 2+1m0s "},
		{by: "b", id: "2", ends: true, known: true, err: awaited.ErrOthers, want: "1+0s 2+1m0s "},
		{by: "", id: "2", ends: true, known: true, want: "1+0s "},
	} {
		known, err := asks(tt.by, tt.id, tt.late, tt.ends)
		if got := waits(); known != tt.known || !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("%d: known %v, %v; %q", i, known, err, got)
		}
	}
}

// TestWaitsAreBounded: a session could have any number noted, all of which are read at each look.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, t.TempDir())
	ask := func(c *store.Change, by, id string) error {
		_, err := awaited.Order{Reply: awaited.Reply{Agent: "a", ID: id, Target: "phone", At: time.Now()}, By: by}.Ask(c)
		return err
	}
	err := s.Write(t.Context(), func(c *store.Change) error {
		for i := range 1000 {
			if err := ask(c, "a", fmt.Sprint(i)); err != nil {
				return err
			}
		}
		if err := ask(c, "a", "one more"); err == nil || !strings.Contains(err.Error(), `sessions of agent "a" wait for 1000 replies already`) {
			t.Errorf("one more: %v", err)
		}
		if err := ask(c, "", strings.Repeat("x", 513)); err == nil || !strings.Contains(err.Error(), "more than 512 bytes") {
			t.Errorf("a long name: %v", err)
		}
		return errors.Join(ask(c, "a", "1"), ask(c, "b", "b's"), ask(c, "", "a person's"))
	})
	if err != nil {
		t.Error(err)
	}
}
