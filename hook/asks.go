package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// asks are what a session asks of its scheduler, and what is in flight by the answers. The session
// goes by that: nobody but the scheduler moves an entry, which says so (Live.Moved).
type asks struct {
	send func(wire.Request) // it does not wait

	mu     sync.Mutex
	n      int64
	sent   []*asked // not answered yet, in the order in which they were sent
	known  bool     // an answer has said what is in flight
	flight *queue.Given
	fates  map[string]wire.Fate // :: delivery id of what was in flight → what became of it
	depth  *wire.Depth
	gone   chan struct{} // closed once no answer comes any more
	ended  bool          // gone is closed
	heard  int           // how often the queue was said to have changed
}

// asked is a request.
type asked struct {
	wire.Request
	done   chan struct{} // closed with the answer
	answer wire.Answer
	left   bool // nobody waits for the answer any more
}

func newAsks(send func(wire.Request)) *asks {
	return &asks{send: send, fates: map[string]wire.Fate{}, gone: make(chan struct{})}
}

// ask sends a request.
func (a *asks) ask(steps ...wire.Step) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.put(steps...)
}

func (a *asks) put(steps ...wire.Step) *asked {
	a.n++
	s := &asked{Request: wire.Request{N: a.n, Steps: steps}, done: make(chan struct{})}
	a.sent = append(a.sent, s)
	a.send(s.Request)
	return s
}

// Why a request has no answer.
var (
	errUnanswered    = errors.New("heartbeat run has not answered yet")
	errSchedulerGone = errors.New("heartbeat run has ended")
)

// wait waits for the answer to a request, until ctx ends or patience is over: what it hands over
// later is taken back.
func (a *asks) wait(ctx context.Context, s *asked, patience time.Duration) (wire.Answer, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	why := errUnanswered
	select {
	case <-s.done:
	case <-late.C:
	case <-ctx.Done():
	case <-a.gone:
		why = errSchedulerGone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-s.done:
		return s.answer, s.answer.Err()
	default:
	}
	s.left = true
	return wire.Answer{}, fmt.Errorf("cannot ask for the queue: %w", why)
}

// settle waits until all requests are answered, and something is known.
func (a *asks) settle(ctx context.Context, patience time.Duration) error {
	a.mu.Lock()
	var last *asked
	switch {
	case len(a.sent) > 0:
		last = a.sent[len(a.sent)-1]
	case !a.known:
		last = a.put(wire.Step{Do: wire.Look})
	}
	a.mu.Unlock()
	if last == nil {
		return nil
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-last.done:
		return nil
	case <-a.gone:
		return fmt.Errorf("cannot ask for the queue: %w", errSchedulerGone)
	case <-late.C:
	case <-ctx.Done():
	}
	return fmt.Errorf("cannot ask for the queue: %w", errUnanswered)
}

// take takes an answer.
func (a *asks) take(answer wire.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.sent, func(s *asked) bool { return s.N == answer.N })
	if i < 0 {
		return
	}
	s := a.sent[i]
	a.sent = slices.Delete(a.sent, i, i+1)
	for _, step := range s.Steps[:min(answer.Steps, len(s.Steps))] {
		switch {
		case step.Do == wire.Acknowledge:
			a.fates[step.At.Delivery] = wire.Done
		case step.Do == wire.Look && answer.Fate != "":
			a.fates[step.At.Delivery] = answer.Fate
		}
	}
	if answer.Depth != nil {
		a.depth = answer.Depth
	}
	if answer.Known {
		a.known = true
		a.flight = a.given(answer)
	}
	s.answer = answer
	close(s.done)
	if e := answer.Entry; s.left && s.HandsOver() && answer.Text != nil && e != nil && e.State == queue.Offered {
		a.put(wire.Step{Do: wire.Withdraw, At: wire.RefOf(e)})
	}
}

// given is what an answer says to be in flight, with its text as it was told before if it is not
// told again.
func (a *asks) given(answer wire.Answer) *queue.Given {
	if answer.Entry == nil {
		return nil
	}
	g := &queue.Given{Entry: *answer.Entry}
	if was := a.flight; was != nil && was.Delivery == g.Delivery {
		g.Text, g.Shown = was.Text, was.Shown
	}
	if answer.Text != nil {
		g.Text, g.Shown = *answer.Text, queue.Shown{}
	}
	if answer.Shown != nil {
		g.Shown = *answer.Shown
	}
	return g
}

// isKnown reports whether an answer has said what is in flight.
func (a *asks) isKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// now returns what is in flight, as it will be once all requests are answered; nil: nothing.
func (a *asks) now() *queue.Given {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.foreseen()
}

func (a *asks) foreseen() *queue.Given {
	if a.flight == nil {
		return nil
	}
	g := *a.flight
	for _, s := range a.sent {
		for _, step := range s.Steps {
			g.Entry = step.Foresee(g.Entry)
		}
	}
	return &g
}

// fate returns what became of an entry that is not in flight any more, and forgets it; "" if that
// is not known yet.
func (a *asks) fate(delivery string) wire.Fate {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.fates[delivery]
	if f != "" {
		clear(a.fates) // of one that the session has had before nobody asks
	}
	return f
}

// end says that no answer comes any more.
func (a *asks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended = true
		close(a.gone)
	}
}
