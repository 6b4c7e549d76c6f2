package consent

import (
	"testing"
	"testing/synctest"
	"time"
)

// named is an agent of which nothing but who it is matters.
type named struct {
	Agent
	name string
}

// TestWhoIsTendedTo: a run that ends names the agents about whose requests something still
// goes on, and nobody waits for them longer than they want to.
func TestWhoIsTendedTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := New(Options{})
		stuck, quick, other := named{name: "stuck"}, named{name: "quick"}, named{name: "other"}
		k.tended[stuck], k.tended[quick] = &tending{done: make(chan struct{})}, &tending{done: make(chan struct{})}
		if !k.Tends(named{name: "stuck"}) || k.Tends(other) {
			t.Error("who is tended to is another one")
		}
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(k.tended[quick].done) })
		k.Wait(time.Minute, other, quick)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waits %v for what takes a second", took)
		}
		k.Wait(time.Minute, stuck, quick)
		if took := time.Since(began); took != time.Second+time.Minute {
			t.Errorf("it waits %v for what never ends", took)
		}
	})
}
