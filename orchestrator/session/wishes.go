package session

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Wish is what something in a session wants of the scheduler, in a form that neither the shim nor
// the scheduler looks into.
type Wish struct {
	N    int             `json:"n"` // of the session
	Want json.RawMessage `json:"want"`
}

// Granted is the scheduler's answer to a wish.
type Granted struct {
	N      int             `json:"n"`
	Answer json.RawMessage `json:"answer"`
}

// grantWithin is how long a scheduler may take to answer.
const grantWithin = time.Minute

// wishes are those of a session that are not answered yet.
type wishes struct {
	made chan Wish // for the scheduler

	mu    sync.Mutex
	last  int
	await map[int]chan json.RawMessage
}

func newWishes() *wishes {
	return &wishes{made: make(chan Wish), await: map[int]chan json.RawMessage{}}
}

// grant passes a wish on, and waits for the answer; nil: none has come.
func (w *wishes) grant(ctx context.Context, want []byte) []byte {
	if !json.Valid(want) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grantWithin)
	defer cancel()
	answer := make(chan json.RawMessage, 1)
	w.mu.Lock()
	w.last++
	n := w.last
	w.await[n] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.await, n)
	}()
	select {
	case w.made <- Wish{N: n, Want: want}:
	case <-ctx.Done():
		return nil
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		return nil
	}
}

// granted takes an answer. One for which nobody waits any more is dropped.
func (w *wishes) granted(g Granted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if answer := w.await[g.N]; answer != nil {
		delete(w.await, g.N)
		answer <- g.Answer
	}
}
