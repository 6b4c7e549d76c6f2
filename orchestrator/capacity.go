package orchestrator

import (
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// defaultStartEvery spaces starts while startsAtOnce sessions are starting: a
// client's start is the most expensive second of its life.
const (
	defaultStartEvery = time.Second
	startsAtOnce      = 2
)

// spacing is when the last session was started, and when starts are looked at
// again.
type spacing struct {
	lastStart time.Time
	timer     *time.Timer // looks again at lookAt, when a start may follow
	lookAt    time.Time
}

// takePlaceLocked follows an agent's change of state: it waits for a slot, has
// one, or needs none.
func (s *Scheduler) takePlaceLocked(a *agent, to State) {
	switch to {
	case Waiting:
		s.slots.Wait(a, a.cfg.Group)
	case Starting, Running, Ending:
		s.slots.Take(a, a.cfg.Group)
	case Idle, BackingOff, Parked, Held:
		s.slots.Leave(a)
	}
}

// startingLocked counts the sessions that no hook has spoken from yet.
func (s *Scheduler) startingLocked() int {
	n := 0
	for a := range s.slots.Taken() {
		if a.state == Starting || a.state == Running && a.last.Phase == hook.Starting {
			n++
		}
	}
	return n
}

// obstacleLocked says why an agent that has work cannot start now, or "".
func (s *Scheduler) obstacleLocked(a *agent, now time.Time) string {
	switch first, others := s.slots.First(); {
	case s.slots.Full():
		return "all session slots are taken"
	case s.slots.GroupFull(a.cfg.Group):
		return fmt.Sprintf("all session slots of the group %q are taken", a.cfg.Group)
	case others && first != a:
		return "other agents wait longer"
	}
	if wait := s.opt.StartEvery - now.Sub(s.spacing.lastStart); wait > 0 && s.startingLocked() >= startsAtOnce {
		s.lookAgainLocked(wait)
		return "other sessions are starting"
	}
	return ""
}

// lookAgainLocked gives slots to those who wait, or asks for some, after d at
// the latest.
func (s *Scheduler) lookAgainLocked(d time.Duration) {
	at := time.Now().Add(d)
	if s.spacing.timer != nil {
		if !s.spacing.lookAt.After(at) {
			return
		}
		s.spacing.timer.Stop()
	}
	s.spacing.lookAt = at
	s.spacing.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spacing.timer = nil
		s.slotFreedLocked()
		s.askForSlotLocked()
	})
}

// slotFreedLocked gives free slots to those who wait, longest first.
func (s *Scheduler) slotFreedLocked() {
	for !s.stopping && !s.slots.Full() {
		a, ok := s.slots.First()
		if !ok {
			break
		}
		s.evaluateLocked(a)
		if a.state == Waiting {
			break
		}
	}
	s.finishOnceLocked()
}

// askForSlotLocked asks a session that waits for work to give its slot to an
// agent that has some.
func (s *Scheduler) askForSlotLocked() {
	if s.stopping {
		return
	}
	for _, head := range s.slots.Heads() {
		switch {
		case s.slots.GroupFull(head):
			if s.yieldLocked(func(group string) bool { return group == head }) {
				return
			}
		case !s.slots.Full(), s.yieldLocked(func(string) bool { return true }):
			return
		}
	}
}

// yieldLocked asks the session that has waited longest for work, of those
// whose group serves; without one, the session that has had its slot longest,
// once its slot-time is over. It reports whether a slot is coming free.
func (s *Scheduler) yieldLocked(serves func(group string) bool) bool {
	var idlest, oldest *agent
	for a, group := range s.slots.Taken() {
		switch {
		case !serves(group):
		case a.state == Ending || (a.leaving || a.yields) && a.state == Running:
			return true
		case a.state == Running && a.last.Phase == hook.Waiting && a.cfg.OnIdle == hook.IdleRelease:
			if idlest == nil || a.last.At.Before(idlest.last.At) {
				idlest = a
			}
		case a.state == Running && !a.cfg.KeepsSlot() && (oldest == nil || a.started.Before(oldest.started)):
			oldest = a
		}
	}
	if idlest != nil {
		idlest.yields = true
		idlest.live.Order(session.Order{Yield: true})
		return true
	}
	return oldest != nil && s.slotTimeOverLocked(oldest)
}

// slotTimeOverLocked ends a session after its turn when it has had its slot
// for slot-time, and looks again when that is so.
func (s *Scheduler) slotTimeOverLocked(a *agent) bool {
	if s.fleet.SlotTime <= 0 {
		return false
	}
	if left := time.Until(a.started.Add(s.fleet.SlotTime)); left > 0 {
		s.lookAgainLocked(left)
		return false
	}
	s.finishLocked(a, finishSlotTime)
	return true
}
