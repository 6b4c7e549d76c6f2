package proof

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/internal/testbed"
)

// TestManyChecksAtOnce: never more than the limit, which may change meanwhile; who came
// first begins first, and one that is stopped while it waits takes nobody's place.
func TestManyChecksAtOnce(t *testing.T) {
	t.Parallel()
	agents := 12
	if *testbed.Full {
		agents = 200
	}
	synctest.Test(t, func(t *testing.T) {
		var r Room
		r.Limit(3)
		began := make([]time.Time, agents)
		running := make(chan struct{}, 3)
		for i := range agents {
			go func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%5 == 4 {
					time.AfterFunc(time.Second, cancel)
				}
				if r.Enter(ctx) != nil {
					return
				}
				defer r.Leave()
				select {
				case running <- struct{}{}:
				default:
					t.Error("more run than may")
					return
				}
				began[i] = time.Now()
				time.Sleep(time.Minute)
				<-running
			}()
			synctest.Wait() // they come one after the other
		}
		time.Sleep(90 * time.Second)
		r.Limit(1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(running); n != 1 {
			t.Errorf("%d run at once after the limit was lowered", n)
		}
		r.Limit(3)
		time.Sleep(time.Duration(agents) * time.Minute)
		synctest.Wait()
		var last time.Time
		n := 0
		for i, at := range began {
			if at.IsZero() {
				continue
			}
			if n++; at.Before(last) {
				t.Errorf("%d began before one that came earlier", i)
			}
			last = at
		}
		if want := agents - agents/5; n != want || r.used != 0 || len(r.line) != 0 {
			t.Errorf("%d of %d began; %d run and %d wait still", n, want, r.used, len(r.line))
		}
	})
}
