package session

import (
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestOrdersDoNotWaitForAStuckShim: who gave an order to a shim that had stopped
// reading waited for ever as soon as the pipe was full, with all other sessions. Later
// an order was dropped after a tenth of a second, which a busy machine takes to give
// it: an agent was paused, and its session went on.
func TestOrdersDoNotWaitForAStuckShim(t *testing.T) {
	t.Parallel()
	shim, stdin := io.Pipe() // it has room for nothing
	live := &shimSession{stdin: stdin, log: slog.New(slog.DiscardHandler)}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 3 {
			live.Order(Order{Yield: i == 0, Finish: []string{"", "second", "third"}[i]})
		}
	}()
	select {
	case <-told:
	case <-time.After(testbed.Patience):
		t.Fatal("an order waits for a stuck shim")
	}
	lines := json.NewDecoder(shim) // it goes on
	for i, want := range []string{"", "second", "third"} {
		var o Order
		if err := lines.Decode(&o); err != nil || o.Finish != want || o.Yield != (i == 0) {
			t.Errorf("order %d is %+v, %v", i, o, err)
		}
	}
	shim.Close()
	live.Order(Order{Yield: true}) // to nobody
	if !testbed.Await(testbed.Patience, func() bool { live.mu.Lock(); defer live.mu.Unlock(); return !live.writing }) {
		t.Error("an order waits for a shim that is gone")
	}
}

// TestOrdersToAStuckShimAreBounded: it may stand still for days.
func TestOrdersToAStuckShimAreBounded(t *testing.T) {
	t.Parallel()
	_, stdin := io.Pipe()
	live := &shimSession{stdin: stdin, log: slog.New(slog.DiscardHandler)}
	for range 2 * mostOrders {
		live.Order(Order{Yield: true})
	}
	live.mu.Lock()
	defer live.mu.Unlock()
	if n := len(live.orders); n != mostOrders {
		t.Errorf("%d orders are kept", n)
	}
	stdin.Close()
}
