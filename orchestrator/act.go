package orchestrator

import (
	"context"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
)

// Restart ends the live sessions of agents, all of them when none is named: after
// their turns or, with now, at once, and then what was in flight is recovered by
// on-orphan. Work that is left starts other sessions. It returns what the agents are
// doing now.
func (s *Scheduler) Restart(now bool, names ...string) ([]status.AgentState, error) {
	var states []status.AgentState
	var err error
	s.happened(nil, func(time.Time) {
		var all []*member
		if s.ends() {
			err = notTo("restart", names)
		} else {
			all, err = s.fleet.named(names)
		}
		for _, m := range all {
			m.Restart(now)
			s.fleet.touch(m)
			states = append(states, m.describe())
		}
	})
	return states, err
}

// Cancelled is what came of a wish to cancel what an agent works on.
type Cancelled struct {
	Agent string `json:"agent"`
	// Delivery is the delivery id of the entry, or "": the turn was without one, or
	// there was none.
	Delivery string           `json:"delivery_id,omitempty"`
	ID       string           `json:"id,omitempty"` // its sender's, if it has one
	Outcome  CancelOutcome    `json:"outcome"`
	Why      foreign.Text     `json:"why,omitempty"` // of CancelNothing and CancelFailed
	asked    <-chan cancelled // what it waits for; nil: it is known
}

// CancelOutcome is what came of it. The list is closed.
type CancelOutcome string

// The outcomes of Cancel.
const (
	CancelDead     CancelOutcome = "cancelled"    // the entry is a dead letter
	CancelAgain    CancelOutcome = "queued-again" // the entry stands at the end of the queue
	CancelTurn     CancelOutcome = "turn-ended"   // there was no entry
	CancelFinished CancelOutcome = "had-finished" // the entry was done before it could be cancelled
	CancelNothing  CancelOutcome = "nothing"      // no turn runs
	CancelFailed   CancelOutcome = "failed"       // the turn was ended; what became of the entry is not known yet
)

// cancelled is the end of a wait for it.
type cancelled struct {
	outcome inbox.Outcome // "": it had finished
	err     error
}

// Cancel ends the turns that agents are in, and has their entries given up or, with
// again, queued once more as if they were new. Where only is not "", it is the id or
// the delivery id of the one entry that is meant. It returns when what came of it is
// known, or ctx ends; the turns end all the same.
func (s *Scheduler) Cancel(ctx context.Context, only string, again bool, names ...string) ([]Cancelled, error) {
	var all []Cancelled
	var err error
	s.happened(nil, func(time.Time) {
		var members []*member
		members, err = s.fleet.named(names)
		for _, m := range members {
			all = append(all, m.cancel(only, again))
			s.fleet.touch(m)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := all[i].await(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// cancel begins to cancel what a member works on.
func (m *member) cancel(only string, again bool) Cancelled {
	c := Cancelled{Agent: m.Name, Outcome: CancelNothing}
	work, why := m.Cancel(only, again)
	if why != "" {
		c.Why = foreign.Text(why)
		return c
	}
	if work != nil {
		c.ID = work.ID
	}
	asked := make(chan cancelled, 1)
	m.cancelling = append(m.cancelling, asked)
	c.Delivery, c.asked = m.Cancels().Delivery, asked
	return c
}

// await waits for what comes of it.
func (c *Cancelled) await(ctx context.Context) error {
	if c.asked == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case end := <-c.asked:
		c.Outcome = end.of(c.Delivery)
		if c.Outcome == CancelFailed {
			c.Why = foreign.Text(string(end.outcome))
			if end.err != nil {
				c.Why = foreign.Text(end.err.Error())
			}
		}
	}
	return nil
}

func (c cancelled) of(delivery string) CancelOutcome {
	switch {
	case c.err != nil:
		return CancelFailed
	case delivery == "" && c.outcome != "":
		return CancelTurn
	}
	switch c.outcome {
	case inbox.CancelledOrphan:
		return CancelDead
	case inbox.QueuedAgain:
		return CancelAgain
	case "", inbox.NothingToRecover, inbox.StaleOrphanDeleted:
		return CancelFinished
	}
	return CancelFailed
}

// cancels tells those who wait for it what came of a wish to cancel. An agent that
// still has one knows more later.
func (m *member) cancels(c cancelled) {
	if m.Cancels() != nil {
		return
	}
	for _, asked := range m.cancelling {
		asked <- c
	}
	m.cancelling = nil
}
