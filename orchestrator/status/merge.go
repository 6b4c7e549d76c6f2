package status

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/usage"
)

// seen is what the disk says about an agent.
type seen struct {
	published *AgentState // what its last scheduler wrote; nil: nothing
	unknown   error       // why published cannot be read
	missing   bool        // its directory does not exist
	running   bool        // a scheduler holds the lock of its directory
	other     string      // says which fleet's that is, where it is another one's; or ""
	record    *hook.Shown
	// paused is whether the next run begins with it paused; nil: that is not known.
	paused *memory.Paused
	// approval is what the agent waits for a person to say yes or no to, or nil.
	approval *Approval
	// budget is one that is used up, or nil.
	budget *Budget
	queue  seenQueue
	today  usage.Sum
}

// seenQueue is what the disk says about a queue. The zero value stands for a queue
// that was never used.
type seenQueue struct {
	err    error // why it cannot be read
	depth  inbox.Depth
	flight *inbox.InFlight
	dead   inbox.DeadCount
	aside  []string // the deliveries of what is set aside
	// missing is what somebody took out of the inbox and nobody has filed yet.
	missing inbox.Gone
	// counted is true when dead was, whatever err says.
	counted bool
	// obstacles are files of the queue that cannot be read and hide something; err does not
	// say so of those that the queue sets aside by itself.
	obstacles []inbox.Obstacle
}

// hidden reports whether an obstacle hides something of the queue.
func (q seenQueue) hidden(what inbox.Hidden) bool {
	return slices.ContainsFunc(q.obstacles, func(o inbox.Obstacle) bool { return o.Hides == what })
}

// hiding are the obstacles that hide something.
func hiding(all []inbox.Obstacle) []inbox.Obstacle {
	return slices.DeleteFunc(all, func(o inbox.Obstacle) bool { return o.Hides == inbox.HidesNothing })
}

// unread says of a queue's files that cannot be read why, or "".
func unread(obstacles []inbox.Obstacle) string {
	if len(obstacles) == 0 {
		return ""
	}
	text := obstacles[0].Err.Error()
	if more := len(obstacles) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more of the queue's files", more)
	}
	return text
}

// merge combines the disk's facts with the scheduler's answer, if there is one. The
// scheduler wins, except for a session's phase and work: hooks write these to the
// disk before the scheduler knows them.
func merge(a *config.Agent, on seen, live *AgentState, now time.Time) Agent {
	st := onDisk(a, on)
	if live != nil {
		st.AgentState = *live
		st.hears(on.record)
	}
	switch q := on.queue; {
	case q.err != nil:
		st.Asks = errors.Is(q.err, inbox.ErrNeedsOperator)
		if st.Problem, st.Unread = unread(q.obstacles), true; st.Problem == "" || st.Asks {
			st.Problem = q.err.Error()
		}
	case q.hidden(inbox.HidesQueue):
		st.Problem, st.Unread = unread(q.obstacles), true
	default:
		st.Problem = cmp.Or(unread(q.obstacles), st.Problem)
		st.Depth, st.InFlight = q.depth, q.flight
	}
	st.Dead, st.DeadMore, st.DeadSince = on.queue.dead.Entries, on.queue.dead.More, on.queue.dead.Oldest
	st.TakenOut = TakenOutOf(on.queue.missing, on.queue.dead)
	st.DeadUnread = !on.queue.counted && (on.queue.err != nil || on.queue.hidden(inbox.HidesDead))
	st.Today, st.MaxQueue = on.today, a.MaxQueue
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
	case on.other != "":
		st.Problem = on.other
	}
	if !on.running { // the published state is of a run that has ended
		if on.published != nil {
			st.Was = st.State
		}
		st.State, st.Phase, st.Work, st.Until, st.Failing, st.Lost, st.Stuck, st.Untended = Stopped, "", nil, time.Time{}, nil, "", nil, nil
		st.waitsFor(on.paused)
		st.Approval, st.Budget, st.OverBudget = on.approval, on.budget, on.budget != nil
		return st
	}
	if st.State == Stopped {
		st.State = Idle // the new run has not published it yet
	}
	if r := on.record; r != nil && r.Phase != hook.Ended {
		st.Phase, st.Work, st.Attached, st.Hush = r.Phase, r.Work, r.Attached, r.Hush()
	}
	return st
}

// Hear takes in what the hooks of an agent's live session have written down, which a
// scheduler knows a moment later.
func (a *AgentState) Hear(of *config.Agent) {
	if !a.lives() {
		return
	}
	if r, err := hook.ReadRecord(of.Home); err == nil && r != nil && r.Session == a.Session {
		a.hears(r)
	}
}

// hears takes in what a session's record says, unless it has ended or there is none.
func (a *AgentState) hears(r *hook.Shown) {
	if r != nil && r.Phase != hook.Ended {
		a.Phase, a.Work = cmp.Or(r.Phase, a.Phase), cmp.Or(r.Work, a.Work)
	}
}

// waitsFor takes in whether an agent that nobody runs is paused: that may have
// changed since its last run.
func (a *Agent) waitsFor(p *memory.Paused) {
	if p == nil {
		return
	}
	if p.Since.IsZero() && !a.Paused.IsZero() && a.Was == Held {
		a.Was = Idle // that was why
	}
	a.Paused, a.PausedUntil, a.PausedBy = p.Since, p.Until, p.By
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
		case t.Webhook != nil:
			a.Webhooks++
		}
	}
}
