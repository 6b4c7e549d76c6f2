package agent

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// past is what is remembered of failures and of what they left behind.
type past struct {
	history history
	held    held
	backOff wait
	fix     string // what to change against held or backOff, or ""
	blocked blocked
	client  installed
	parked  Parking // because of its account
	login   login   // the login that its account refused
	budget  wait    // because a budget is used up
	left    left
	stuck   *status.Stuck     // while the service keeps failing
	loss    *status.QueueLoss // until a person acknowledges it
	goesOn  time.Time
}

// held is why nothing is started until a person says so; the zero value: it is not held.
type held struct {
	why     string
	lasts   bool // it is the policy's, and the next run's too
	limited bool // it is for a limit of its account: on-limit: hold
}

// left is what the last session left.
type left struct {
	outcome *session.Outcome
	// denied, servers and strays are those of the last session that has something to say of them: one
	// that has come to nothing has perhaps not got that far.
	denied  []session.Denied
	servers []session.Server
	strays  []session.Stray
	owed    *session.Outcome // of one whose entry is recovered before the next start
	// unseen is true while nobody has dealt with what is in flight in a directory
	// that replaced another one.
	unseen bool
	// inFlight is the entry that is in flight without a session.
	inFlight *hook.Work
}

// ends takes in how a session has ended.
func (l *left) ends(o *session.Outcome) {
	l.outcome = o
	if o.Acknowledged > 0 || o.Denied != nil {
		l.denied = o.Denied
	}
	if o.Acknowledged > 0 || o.Servers != nil {
		l.servers = o.Servers
	}
	if o.Acknowledged > 0 || o.Strays != nil {
		l.strays = o.Strays
	}
}

// wait is until when nothing is started, and why.
type wait struct {
	until time.Time
	why   string
}

// follow carries out what the policy has decided.
func (a *Agent) follow(n next) {
	p := &a.past
	p.held, p.backOff, p.parked, p.blocked, p.login = held{}, wait{}, Parking{}, blocked{}, login{}
	p.fix = n.fix
	a.alarms.set(Ask, time.Time{})
	switch n.state {
	case status.Held:
		p.held = held{why: n.reason, lasts: n.lasts}
	case status.BackingOff:
		p.backOff = wait{n.until, n.reason}
	case status.Parked:
		if p.parked = n.parking; n.parking.Limit && a.def.OnLimit == config.LimitHolds {
			p.parked, p.held = Parking{}, held{why: n.parking.Reason + "; on-limit: hold", limited: true}
		}
	case status.Idle:
		a.idle = n.reason
		a.queue.stale = true
	}
}

// Hold returns why nothing is started in this run and the next ones, or the zero value.
func (a *Agent) Hold() memory.Held {
	switch b := a.past.blocked; {
	case a.wish.removed:
	case a.past.held.lasts:
		return memory.Held{Why: a.past.held.why, Fix: a.past.fix}
	case b.why != "" && b.answers != "":
		return memory.Held{Why: b.why, Fix: b.fix, Answers: b.answers}
	}
	return memory.Held{}
}

// WasHeld continues the hold of an earlier run.
func (a *Agent) WasHeld(h memory.Held, since, now time.Time) {
	a.shown.Reason, a.shown.since = Reason{State: status.Held, Text: h.Why, Fix: h.Fix, GoesOn: h.Answers != ""}, since
	if h.Answers == "" {
		a.past.held.why, a.past.fix, a.past.held.lasts = h.Why, h.Fix, true
		return
	}
	a.past.blocked = blocked{why: h.Why, fix: h.Fix, since: since, answers: h.Answers, unasked: true}
	a.alarms.set(Ask, now)
}

// goesOn decides how long the conversation of a session that takes only one entry may be
// continued: as long as the session would have lived otherwise. `context: session` promises
// that queued entries share a conversation; `context: entry` begins a new one for each entry
// anyway.
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

// resumeWithin is how long queued work may wait, for example for a slot, and still
// continue in the conversation.
const resumeWithin = 24 * time.Hour

// GoesOn returns until when queued work continues in the last conversation.
func (a *Agent) GoesOn() time.Time {
	if until := a.resumesUntil(); until.After(a.past.goesOn) {
		return until
	}
	return a.past.goesOn
}
