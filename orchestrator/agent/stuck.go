package agent

import (
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// stuckAfter updates whether work is stuck after a session's end, once it is decided what
// follows. Work at the head of the queue is stuck if the service refuses it again and again.
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
