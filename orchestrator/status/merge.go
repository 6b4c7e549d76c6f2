package status

import (
	"cmp"
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
)

// seen is what the disk says of an agent.
type seen struct {
	published *AgentState // by the scheduler that ran it last; nil: nothing
	unknown   error       // why that cannot be read
	missing   bool        // its directory is not there
	running   bool        // a scheduler has its directory
	record    *hook.Shown
	queue     seenQueue
}

// seenQueue is what the disk says of a queue; the zero value is that of one
// into which nothing was ever put.
type seenQueue struct {
	err    error // why it cannot be read
	depth  inbox.Depth
	flight *inbox.InFlight
	dead   inbox.DeadCount
}

// merge lays what a scheduler says, if one has answered, over what the disk
// does. What a session is doing is on the disk first: its hooks write it there.
func merge(a *config.Agent, on seen, live *AgentState, now time.Time) Agent {
	st := onDisk(a, on)
	if live != nil {
		phase, work := cmp.Or(st.Phase, live.Phase), cmp.Or(st.Work, live.Work)
		st.AgentState = *live
		st.Phase, st.Work = phase, work
	}
	if q := on.queue; q.err != nil {
		st.Problem, st.Unread, st.Asks = q.err.Error(), true, errors.Is(q.err, inbox.ErrNeedsOperator)
	} else {
		st.Depth, st.InFlight, st.Dead, st.DeadMore = q.depth, q.flight, q.dead.Entries, q.dead.More
	}
	st.lookAtTriggers(a, now)
	return st
}

func onDisk(a *config.Agent, on seen) Agent {
	st := Agent{AgentState: AgentState{Agent: a.Name, State: Stopped}}
	if on.published != nil {
		st.AgentState = *on.published
	}
	switch {
	case on.unknown != nil:
		st.Problem = on.unknown.Error()
	case on.missing:
		st.Problem = a.Dir + " is not there; heartbeat apply " + a.Name + " makes it"
	}
	if !on.running { // what it did then is no longer so
		if on.published != nil {
			st.Was = st.State
		}
		st.State, st.Phase, st.Work, st.Until, st.Failing, st.Lost, st.Stuck = Stopped, "", nil, time.Time{}, nil, "", nil
		return st
	}
	if st.State == Stopped {
		st.State = Idle // it has done nothing yet
	}
	if r := on.record; r != nil && r.Phase != hook.Ended {
		st.Phase, st.Work, st.Attached, st.Hush = r.Phase, r.Work, r.Attached, r.Hush()
	}
	return st
}

func (a *Agent) lookAtTriggers(cfg *config.Agent, now time.Time) {
	for _, t := range cfg.Triggers {
		switch {
		case t.Cron != nil:
			if n := firing.NextFire(cfg, &t, now); !n.IsZero() && (a.Next.IsZero() || n.Before(a.Next)) {
				a.Next = n
			}
		case t.Watch != nil:
			a.Watches++
		case t.Poll != nil:
			a.Polls++
		}
	}
}
