package lobby

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/ptyrun/peer"
)

// TestBodiesAreBounded: what is held at a time, that who sends nothing gives way to who comes,
// and that who has sent all of it does not.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := Bodies{Most: 10}
		enter := func(size int) (*Body, *stranger, error) {
			s := &stranger{from: "192.0.2.1"}
			ctx, cancel := context.WithTimeout(peer.With(t.Context(), read(s)), time.Minute)
			defer cancel()
			body, err := b.Enter(ctx, size)
			return body, s, err
		}
		whole, first, err := enter(6)
		if err != nil {
			t.Fatal(err)
		}
		whole.Arrived(5)
		slow, second, err := enter(5)
		if err != nil || b.taken != 10 {
			t.Fatal(err, b.taken)
		}
		go func() {
			for !second.closed.Load() {
				time.Sleep(spared)
			}
			slow.Leave() // reading it has failed
		}()
		began := time.Now()
		next, third, err := enter(5)
		if err != nil || !second.closed.Load() || first.closed.Load() || time.Since(began) > stalled+2*spared {
			t.Errorf("%v, %v, %v after %v", err, second.closed.Load(), first.closed.Load(), time.Since(began))
		}
		next.Arrived(5)
		if _, _, err := enter(1); !errors.Is(err, ErrNoRoom) || first.closed.Load() || third.closed.Load() {
			t.Errorf("where all have arrived: %v, %v, %v", err, first.closed.Load(), third.closed.Load())
		}
		whole.Leave()
		next.Leave()
		large, _, err := enter(100) // which is refused while it is read
		if err != nil || b.taken != 10 {
			t.Fatal(err, b.taken)
		}
		large.Leave()
		if b.taken != 0 || len(b.held) != 0 {
			t.Errorf("%d bytes of %d bodies stay taken", b.taken, len(b.held))
		}
	})
}
