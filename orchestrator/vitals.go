package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"heartbeat/orchestrator/status"
)

// Vitals are facts about a run as a whole.
type Vitals struct {
	// Ready is true from the moment at which directories are locked, orphans
	// recovered and triggers run; Stopping from the moment at which nothing new is
	// started.
	Ready    bool `json:"ready"`
	Stopping bool `json:"stopping"`
	// Slots is how many sessions may live at once, Sessions how many do.
	Slots    int `json:"slots"`
	Sessions int `json:"sessions"`
	// Agents counts the agents by their states.
	Agents map[status.State]int `json:"agents"`
	// Parked is until when an account is parked, the longest of them, or zero.
	Parked time.Time `json:"parked,omitzero"`
}

// Vitals returns the facts of the run as they are now.
func (s *Scheduler) Vitals() Vitals {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := Vitals{
		Ready: s.fleet.stage >= ready, Stopping: s.fleet.stage == stopping, Slots: s.fleet.declared.MaxSessions, Sessions: s.fleet.line.Count(),
		Agents: map[status.State]int{},
	}
	for m := range s.fleet.shown() {
		v.Agents[m.State()]++
	}
	v.Parked = s.fleet.accounts.Parked(s.opt.Now())
	return v
}

// Alive returns nil if the scheduler demonstrably lives: its lock can be taken,
// and, while triggers run, their loop turns when asked to. The error says which of
// the two did not happen before ctx ended. It may be called at any time and from
// several goroutines.
func (s *Scheduler) Alive(ctx context.Context) error {
	l := s.glances.glance(s)
	select {
	case <-l.done:
	case <-ctx.Done():
		return fmt.Errorf("the scheduler is stuck: its lock is not given back: %w", context.Cause(ctx))
	}
	if l.work == nil {
		return nil
	}
	// The loop ends with the work.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.work, func() { cancel(errWorkEnded) })()
	if err := s.firing.Turn(ctx); err != nil && !errors.Is(err, errWorkEnded) {
		return fmt.Errorf("the scheduler is stuck: the loop of its schedules does not turn: %w", err)
	}
	return nil
}

var errWorkEnded = errors.New("the work has ended")

// glance is one taking of the scheduler's lock, and what was seen then.
type glance struct {
	done chan struct{}   // closed when the lock was taken; the rest may be read then
	work context.Context // in which the loop of the schedules runs, or nil
}

// glances keeps the glance that waits for the lock: however often somebody asks, at
// most one goroutine waits.
type glances struct {
	mu      sync.Mutex
	waiting *glance
}

func (g *glances) glance(s *Scheduler) *glance {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting != nil {
		return g.waiting
	}
	l := &glance{done: make(chan struct{})}
	g.waiting = l
	go func() {
		s.mu.Lock()
		if s.fleet.stage == ready {
			l.work = s.work
		}
		s.mu.Unlock()
		g.mu.Lock()
		g.waiting = nil
		g.mu.Unlock()
		close(l.done)
	}()
	return l
}
