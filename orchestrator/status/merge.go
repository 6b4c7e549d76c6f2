package status

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/usage"
)

// seen is what the disk says about an agent.
type seen struct {
	published *AgentState // what its last scheduler wrote; nil: nothing
	unknown   error       // why published cannot be read
	missing   bool        // its directory does not exist
	running   bool        // a scheduler holds the lock of its directory
	other     string      // says which fleet's that is, where it is another one's; or ""
	// paused is whether the next run begins with it paused; nil: that is not known.
	paused *memory.Paused
	// approval is what the agent waits for a person to say yes or no to, or nil.
	approval *Approval
	// budget is one that is used up, or nil.
	budget *Budget
	// pausedTriggers are those with which the next run begins.
	pausedTriggers []memory.PausedTrigger
	queue          seenQueue
	today          usage.Sum
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
// scheduler wins.
func merge(a *config.Agent, on seen, live *AgentState, now time.Time) Agent {
	st := onDisk(a, on)
	if live != nil {
		st.AgentState = *live
	}
	st.Denied = session.StillDenied(st.Denied, a.Permissions.Allow)
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
		st.Problem, st.absent = a.Dir+" is not there", true
	case on.other != "":
		st.Problem = on.other
	}
	if !on.running { // the published state is of a run that has ended
		if on.published != nil {
			st.Was = st.State
		}
		st.State, st.Phase, st.Work, st.Until, st.Failing, st.RefusedRequests, st.Unsent, st.Lost, st.Stuck, st.Untended = Stopped, "", nil, time.Time{}, nil, nil, nil, "", nil, nil
		st.waitsFor(on.paused)
		st.PausedTriggers = on.pausedTriggers
		st.Approval, st.Budget, st.OverBudget = on.approval, on.budget, on.budget != nil
		return st
	}
	if st.State == Stopped {
		st.State = Idle // the new run has not published it yet
	}
	return st
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
			if n := firing.NextFire(cfg, &t, firing.Paused{cfg.Name: a.PausedTriggers}.Of(cfg.Name, t.Name), now); !n.IsZero() && (a.Next.IsZero() || n.Before(a.Next)) {
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
