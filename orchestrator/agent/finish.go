package agent

import (
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// Why sessions are told to finish.
const (
	FinishShutdown = "the scheduler is stopping"
	FinishRemoved  = "the agent was removed from the configuration"
	FinishChanged  = "the agent's definition changed"
	FinishSlotTime = "other agents wait for its slot"
	FinishReplaced = "its directory was replaced"
)

// Finish tells the live session to end after its turn.
func (a *Agent) Finish(why string) {
	if a.life.is != Live {
		return
	}
	a.life.leaves = finishes
	a.order(session.Order{Finish: why, Shutdown: why == FinishShutdown})
}

// FinishForLimit tells the live session to end after its turn, because its account
// is parked; its conversation continues afterwards.
func (a *Agent) FinishForLimit(why string) {
	if a.life.is == Live && !a.life.limited {
		a.life.limited = true
		a.Finish(why)
	}
}

// StopForLimit ends a session that was being started when its account was parked:
// it would only be refused.
func (a *Agent) StopForLimit(why string) {
	if a.life.is == Live {
		a.life.limited = true
		a.order(session.Order{Stop: true, Finish: why})
	}
}

// IdleSince returns since when the live session has been waiting for work or for a check. ok is
// false for a session that keeps its slot, or leaves it anyway.
func (a *Agent) IdleSince() (since time.Time, ok bool) {
	l := a.life
	idle := l.last.Phase == hook.Waiting || l.last.Phase == hook.Checking
	return l.last.At, l.is == Live && l.leaves == stays && idle && a.def.OnIdle == hook.IdleRelease
}

// SlotSince returns since when the live session, which may be asked to end after its turn,
// has had its slot. It is false for one that is idle, keeps its slot, or leaves it anyway.
func (a *Agent) SlotSince() (since time.Time, ok bool) {
	_, idle := a.IdleSince()
	return a.life.started, a.life.is == Live && a.life.leaves == stays && a.life.last.Phase != hook.Ending && !idle && !a.def.KeepsSlot()
}

// Leaves reports whether its slot is about to become free.
func (a *Agent) Leaves() bool {
	return a.life.is == Live && (a.life.leaves != stays || a.life.last.Phase == hook.Ending)
}

// Boots reports whether a session is starting and none of its hooks has reported yet.
func (a *Agent) Boots() bool {
	return a.life.is == Starting || a.life.is == Live && a.life.last.Phase == hook.Starting
}

// Yield tells the live session, which waits for work, to end unless work arrives.
func (a *Agent) Yield() {
	if a.life.is != Live {
		return
	}
	a.life.leaves = yields
	a.order(session.Order{Yield: true})
}

// Stop ends the live session, whatever it does, because the scheduler ends.
func (a *Agent) Stop() { a.order(session.Order{Stop: true, Shutdown: true}) }
