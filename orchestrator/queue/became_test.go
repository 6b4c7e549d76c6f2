package queue

import (
	"os"
	"testing"

	"heartbeat/hook/inbox"
)

// TestWhatBecameOfAnEntry: in flight it has a state, and after that it is done, queued again,
// a dead letter, or gone.
func TestWhatBecameOfAnEntry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy inbox.OrphanPolicy
		cancel *inbox.Cancellation
		want   Became
	}{
		{"retry", inbox.Retry, nil, Became{Queued: true}},
		{"dead letter", inbox.DeadLetter, nil, Became{Dead: inbox.Interrupted}},
		{"drop", inbox.Drop, nil, Became{}},
		{"cancelled", inbox.Retry, &inbox.Cancellation{}, Became{Dead: inbox.Cancelled}},
		{"cancelled, queued again", inbox.Drop, &inbox.Cancellation{Again: true}, Became{Queued: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, "a", "b")
			start(t, a, inbox.Started)
			flight, err := open(t, a).Peek()
			if err != nil {
				t.Fatal(err)
			}
			check := func(want Became) {
				t.Helper()
				if b, err := WhatBecame(t.Context(), a, flight.DeliveryID, "a"); err != nil || b != want {
					t.Errorf("%+v (%v), want %+v", b, err, want)
				}
			}
			check(Became{State: inbox.Started})
			i := inbox.Interruption{Policy: tt.policy, Cancel: tt.cancel, MaxAttempts: 5}
			if i.Cancel != nil {
				i.Cancel.Delivery = flight.DeliveryID
			}
			if _, err := RecoverOwn(t.Context(), a, i); err != nil {
				t.Fatal(err)
			}
			check(tt.want)
		})
	}
	a := newAgent(t, "a", "b")
	start(t, a, inbox.Started)
	flight, err := open(t, a).Peek()
	if err != nil {
		t.Fatal(err)
	}
	err = locked(t.Context(), place(a), func(q *inbox.Held) error { _, err := q.Acknowledge(inbox.Acknowledgement{}); return err })
	if err != nil {
		t.Fatal(err)
	}
	if b, err := WhatBecame(t.Context(), a, flight.DeliveryID, "a"); err != nil || b != (Became{Done: true}) {
		t.Errorf("done: %+v (%v)", b, err)
	}
}

// TestWhatBecameOfALineByHand: it has no id of its own; cancelled and queued again it was said
// to be dropped.
func TestWhatBecameOfALineByHand(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	if err := os.WriteFile(a.Inbox, []byte("by hand\nand another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, a, inbox.Started)
	flight, err := open(t, a).Peek()
	if err != nil {
		t.Fatal(err)
	}
	again := &inbox.Cancellation{Delivery: flight.DeliveryID, Again: true}
	if _, err := RecoverOwn(t.Context(), a, inbox.Interruption{Cancel: again}); err != nil {
		t.Fatal(err)
	}
	if b, err := WhatBecame(t.Context(), a, flight.DeliveryID, ""); err != nil || b != (Became{Queued: true}) {
		t.Errorf("%+v (%v)", b, err)
	}
}
