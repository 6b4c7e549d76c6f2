package agent

import (
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// stuckAfter takes how a session ended, once it is decided what follows: work at
// the head of the queue that the service refuses again and again is stuck.
func (a *Agent) stuckAfter(o session.Outcome, now time.Time) {
	refused := o.Why == hook.EndAPIFailure && faultOf(o.Detail) == client.ServiceFault
	if !refused || o.Acknowledged > 0 {
		a.past.stuck = nil
	}
	if !refused {
		return
	}
	if a.past.stuck == nil {
		a.past.stuck = &status.Stuck{Since: now}
	}
	a.past.stuck.Why = Describe(o)
}

// tellsStuck returns when to report stuck work, or zero.
func (a *Agent) tellsStuck() time.Time {
	k, after := a.past.stuck, a.def.StuckAfter
	if k == nil || k.Told || after <= 0 {
		return time.Time{}
	}
	return k.Since.Add(after)
}
