package agent

import (
	"cmp"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/status"
)

// Reason is what an agent does, or why it does nothing. Package status knows what a person
// can type about it (status.Agent.Troubles).
type Reason struct {
	State status.State
	// Text is the reason without advice. Fix is what to change first, or "". GoesOn is true
	// if the agent continues by itself once that is done.
	Text, Fix string
	GoesOn    bool
	// Until is when it ends by itself; zero: something has to happen.
	Until time.Time
	// Paused is true if it is Held because somebody paused it.
	Paused bool
}

// Gate is one possible reason why nothing is started. No returns nil if the gate lets the agent
// pass. It is a pure function of the agent and the time.
type Gate struct {
	Name string
	No   func(a *Agent, now time.Time) *Reason
}

// Gates are all gates, in order. People are told the first one that says no. All but the last
// apply whether or not anything is queued for the agent.
var Gates = []Gate{
	{"succession", succession},
	{"hold", hold},
	{"paused", paused},
	{"approval", approval},
	{"preflight", preflight},
	{"client", onClient},
	{"recovering", recovering},
	{"checking", beingChecked},
	{"back-off", backOff},
	{"account", onAccount},
	{"budget", withinBudget},
	{"place", inPlace},
	{"line", inLine},
}

// succession: a removed agent begins nothing. Nor does an agent whose predecessors, which have
// its name or its directory, are not gone yet.
func succession(a *Agent, _ time.Time) *Reason {
	switch {
	case a.wish.removed:
		return &Reason{State: status.Idle, Text: FinishRemoved}
	case a.Expected():
		return &Reason{State: status.Idle, Text: "another agent still has its name or its directory"}
	}
	return nil
}

// hold: too many failures, or a failure that only a person can repair.
func hold(a *Agent, _ time.Time) *Reason {
	if a.past.held.why == "" {
		return nil
	}
	return &Reason{State: status.Held, Text: a.past.held.why, Fix: a.past.fix}
}

func paused(a *Agent, now time.Time) *Reason {
	if a.wish.paused.Since.IsZero() || a.wish.paused.Over(now) {
		return nil
	}
	return &Reason{State: status.Held, Text: a.pausedReason(), Until: a.wish.paused.Until, Paused: true}
}

// approval: a person has to say yes or no first. A resume is neither.
func approval(a *Agent, _ time.Time) *Reason {
	w := a.wish.awaits
	if w == nil {
		return nil
	}
	return &Reason{State: status.Held, Text: a.awaitsReason(), Fix: "heartbeat approval show " + w.ID, GoesOn: true}
}

// preflight: an obstacle to its sessions, as the last check found it.
func preflight(a *Agent, _ time.Time) *Reason {
	if a.past.blocked.why == "" {
		return nil
	}
	return &Reason{State: status.Held, Text: a.past.blocked.why, Fix: a.past.blocked.fix, GoesOn: true}
}

// onClient: a new client is tried first, and a client that no longer does what sessions rely on
// may hold the agent.
func onClient(a *Agent, _ time.Time) *Reason {
	switch c := a.past.client; {
	case c.probed:
		return &Reason{State: status.Idle, Text: c.is.Name + " is new here: it is tried offline for up to a minute; nothing is paid", GoesOn: true}
	case c.held:
		return &Reason{State: status.Held, Text: c.is.Name + " does not do what heartbeat relies on: " + c.is.Breaks, Fix: c.is.Fix, GoesOn: true}
	}
	return nil
}

func recovering(a *Agent, _ time.Time) *Reason {
	if a.life.is != Recovering {
		return nil
	}
	return &Reason{State: status.Idle, Text: "recovering", GoesOn: true}
}

// beingChecked: the entry that its last session left is being checked.
func beingChecked(a *Agent, _ time.Time) *Reason {
	if !a.Checks() {
		return nil
	}
	r := &Reason{State: status.Checking, Text: "its work waits for its check"}
	if p := a.check.told; p != nil {
		r.Text, r.Until = p.String(), p.Until
	}
	return r
}

func backOff(a *Agent, now time.Time) *Reason {
	if deadline.Over(a.past.backOff.until, now) {
		return nil
	}
	return &Reason{State: status.BackingOff, Text: a.past.backOff.why, Fix: a.past.fix, Until: a.past.backOff.until}
}

// withinBudget: the budget of this hour or day is used up.
func withinBudget(a *Agent, now time.Time) *Reason {
	if deadline.Over(a.past.budget.until, now) {
		return nil
	}
	return &Reason{State: status.Parked, Text: a.past.budget.why, Until: a.past.budget.until}
}

// onAccount: its account did not let it start.
func onAccount(a *Agent, now time.Time) *Reason {
	switch p := a.past.parked; {
	case p.Person:
		return &Reason{State: status.Held, Text: p.Reason, Fix: p.Fix}
	case !deadline.Over(p.Until, now):
		return &Reason{State: status.Parked, Text: p.Reason, Until: p.Until}
	}
	return nil
}

func inPlace(a *Agent, _ time.Time) *Reason {
	switch a.place.is {
	case Lost:
		return &Reason{State: status.Idle, Text: a.place.why}
	case Retaking:
		return &Reason{State: status.Idle, Text: cmp.Or(a.place.why, "its directory is being locked again"), GoesOn: true}
	case Ours:
	}
	return nil
}

// inLine: something is queued, and other agents have the slots.
func inLine(a *Agent, _ time.Time) *Reason {
	if a.queue.line == "" {
		return nil
	}
	return &Reason{State: status.Waiting, Text: a.queue.line}
}

// first returns the first no of some gates, or nil.
func (a *Agent) first(gates []Gate, now time.Time) *Reason {
	for _, g := range gates {
		if no := g.No(a, now); no != nil {
			return no
		}
	}
	return nil
}

// Standing returns what the agent does at a time, or the first gate's reason why it
// does nothing.
func (a *Agent) Standing(now time.Time) Reason {
	switch {
	case a.life.is == Starting:
		return Reason{State: status.Starting, Text: a.life.why}
	case a.life.is == Live && a.life.last.Phase == hook.Ending:
		return Reason{State: status.Ending, Text: cmp.Or(a.life.last.Why, "its session is being ended")}
	case a.life.is == Live:
		return Reason{State: status.Running, Text: a.life.why}
	}
	if no := a.first(Gates, now); no != nil {
		return *no
	}
	return Reason{State: status.Idle, Text: a.idle}
}

// Wants reports whether a session would be started for the agent if there were work
// and a slot.
func (a *Agent) Wants(now time.Time) bool {
	return a.life.is == None && a.first(Gates[:len(Gates)-1], now) == nil
}
