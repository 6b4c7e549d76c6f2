package agent

import (
	"time"

	"heartbeat/orchestrator/status"
)

// Parks parks an agent that was about to start, because its account said no.
func (a *Agent) Parks(p Parking, now time.Time) {
	switch a.life.is {
	case Recovering, Live:
		return
	case None, Starting:
	}
	if a.life.is = None; a.past.held.lasts {
		return
	}
	a.follow(next{state: status.Parked, parking: p})
	a.refuses(now)
}

// OnAccount reports whether it waits for its account, or for a person to repair the account.
func (a *Agent) OnAccount() bool { return a.past.parked != Parking{} }

// Unparks makes an agent that waits for its account ask it again.
func (a *Agent) Unparks() {
	if a.life.is == None && a.OnAccount() {
		a.follow(next{state: status.Idle, reason: "its account is asked again"})
	}
}
