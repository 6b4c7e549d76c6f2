package agent

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// past is what is remembered of failures and of what they have left.
type past struct {
	history history
	hold    string // why nothing starts until a person says so, or ""
	lasts   bool   // the hold is the policy's, and the next run's too
	limited bool   // hold is for a limit of its account: on-limit: hold
	blocked blocked
	backOff wait
	parked  Parking // as its account has answered
	budget  wait    // a budget that it spends from is used up
	outcome *session.Outcome
	owed    *session.Outcome
	// unseen is true while nobody has dealt with what is in flight in a directory
	// that has taken the place of another one.
	unseen bool
	// halted is the entry in flight that the service has interrupted.
	halted *hook.Work
	stuck  *status.Stuck     // while the service fails
	loss   *status.QueueLoss // that no person has taken note of
	goesOn time.Time
}

// wait is until when nothing is started, and why.
type wait struct {
	until time.Time
	why   string
}

// follow carries out what the policy has decided.
func (a *Agent) follow(n next) {
	p := &a.past
	p.hold, p.lasts, p.limited, p.backOff, p.parked, p.blocked = "", false, false, wait{}, Parking{}, blocked{}
	a.alarms.set(Ask, time.Time{})
	switch n.state {
	case status.Held:
		p.hold, p.lasts = n.reason, n.lasts
	case status.BackingOff:
		p.backOff = wait{n.until, n.reason}
	case status.Parked:
		if p.parked = n.parking; n.parking.Limit && a.def.OnLimit == config.LimitHolds {
			p.parked, p.hold, p.limited = Parking{}, n.parking.Reason+"; on-limit: hold", true
		}
	case status.Idle:
		a.idle = n.reason
		a.queue.stale = true
	}
}

// Hold is why nothing is started in this run and the next ones until a person says
// so or another definition holds, or "".
func (a *Agent) Hold() string {
	if !a.past.lasts || a.wish.removed {
		return ""
	}
	return a.past.hold
}

// WasHeld goes on with the hold of an earlier run.
func (a *Agent) WasHeld(why string, since time.Time) {
	a.past.hold, a.past.lasts = why, true
	a.shown.Reason, a.shown.since = Reason{State: status.Held, Text: why}, since
}

// goesOn decides how long the conversation of a session goes on that ended
// because it takes one entry: as long as the session would have lived. Whatever
// has it take one, `context: session` promises that what is queued shares a
// conversation; `context: entry` wants a new one for each entry anyway.
func (a *Agent) goesOn(e End, now time.Time) {
	switch c := a.def; {
	case a.life.limited && c.Context == hook.ContextSession:
		a.past.goesOn = now.Add(account.Longest + resumeWithin)
	case !e.GoesOn || c.Context != hook.ContextSession:
		if e.Acknowledged > 0 || e.Bound {
			a.past.goesOn = time.Time{}
		}
	case e.Left:
		a.past.goesOn = now.Add(resumeWithin)
	case c.Mode == hook.Persist:
		a.past.goesOn = now.Add(c.IdleInterval)
	default:
		a.past.goesOn = time.Time{}
	}
}

// resumeWithin is how long what is queued may wait, for a slot say, and still go
// on in the conversation.
const resumeWithin = 24 * time.Hour

// GoesOn is until when what is queued goes on in the last conversation.
func (a *Agent) GoesOn() time.Time { return a.past.goesOn }
