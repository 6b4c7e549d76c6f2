package orchestrator

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// defaultStartEvery spaces starts while startsAtOnce sessions are starting: a
// client's start is the most expensive second of its life.
const (
	defaultStartEvery = time.Second
	startsAtOnce      = 2
)

// slots are who has a session slot and who waits for one.
type slots struct {
	active    map[*agent]struct{}
	waiting   []*agent // the longest first
	lastStart time.Time
	timer     *time.Timer // looks again at lookAt, when a start may follow
	lookAt    time.Time
}

// moved follows an agent's change of state.
func (l *slots) moved(a *agent, from, to State) {
	if from == Waiting {
		l.waiting = slices.DeleteFunc(l.waiting, func(w *agent) bool { return w == a })
	}
	if to == Waiting {
		l.waiting = append(l.waiting, a)
	}
	if holdsSlot(to) {
		l.active[a] = struct{}{}
	} else {
		delete(l.active, a)
	}
}

// holdsSlot reports whether a session lives, or is about to, in a state.
func holdsSlot(s State) bool { return s == Starting || s == Running || s == Ending }

// starting counts the sessions that no hook has spoken from yet.
func (l *slots) starting() int {
	n := 0
	for a := range l.active {
		if a.state == Starting || a.state == Running && a.last.Phase == hook.Starting {
			n++
		}
	}
	return n
}

// obstacleLocked says why an agent that has work cannot start now, or "".
func (s *Scheduler) obstacleLocked(a *agent, now time.Time) string {
	switch first := s.firstLocked(); {
	case s.triedLocked(a, now):
		return s.account.probe.name + " tries the account first"
	case len(s.slots.active) >= s.fleet.MaxSessions:
		return "all session slots are taken"
	case s.groupFullLocked(a):
		return fmt.Sprintf("all session slots of the group %q are taken", a.cfg.Group)
	case first != nil && first != a:
		return "other agents wait longer"
	}
	if wait := s.opt.StartEvery - now.Sub(s.slots.lastStart); wait > 0 && s.slots.starting() >= startsAtOnce {
		s.lookAgainLocked(wait)
		return "other sessions are starting"
	}
	return ""
}

// groupFullLocked reports whether an agent's group has all the sessions that
// it may have.
func (s *Scheduler) groupFullLocked(a *agent) bool {
	limit, ok := s.fleet.Groups[a.cfg.Group]
	if !ok {
		return false
	}
	n := 0
	for b := range s.slots.active {
		if b.cfg.Group == a.cfg.Group {
			n++
		}
	}
	return n >= limit
}

// firstLocked returns the agent that has waited longest of those whom a free
// slot would serve.
func (s *Scheduler) firstLocked() *agent {
	for _, a := range s.slots.waiting {
		if !s.groupFullLocked(a) {
			return a
		}
	}
	return nil
}

// lookAgainLocked gives slots to those who wait, after d at the latest.
func (s *Scheduler) lookAgainLocked(d time.Duration) {
	at := time.Now().Add(d)
	if s.slots.timer != nil {
		if !s.slots.lookAt.After(at) {
			return
		}
		s.slots.timer.Stop()
	}
	s.slots.lookAt = at
	s.slots.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.slots.timer = nil
		s.slotFreedLocked()
	})
}

// slotFreedLocked gives free slots to those who wait, longest first.
func (s *Scheduler) slotFreedLocked() {
	for !s.stopping && len(s.slots.active) < s.fleet.MaxSessions {
		a := s.firstLocked()
		if a == nil {
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
	full := len(s.slots.active) >= s.fleet.MaxSessions
	for _, a := range s.slots.waiting {
		switch {
		case s.groupFullLocked(a):
			if s.yieldLocked(func(c *config.Agent) bool { return c.Group == a.cfg.Group }) {
				return
			}
		case !full, s.yieldLocked(func(*config.Agent) bool { return true }):
			return
		}
	}
}

// yieldLocked asks the session that has waited longest for work, of those
// whose agents serve. It reports whether a slot is coming free.
func (s *Scheduler) yieldLocked(serves func(*config.Agent) bool) bool {
	var idlest *agent
	for a := range s.slots.active {
		switch {
		case !serves(a.cfg):
		case a.state == Ending || a.leaving && a.state == Running:
			return true
		case a.state == Running && a.last.Phase == hook.Waiting && a.cfg.OnIdle == hook.IdleRelease:
			if idlest == nil || a.last.At.Before(idlest.last.At) {
				idlest = a
			}
		}
	}
	if idlest == nil {
		return false
	}
	idlest.leaving = true
	idlest.live.Order(session.Order{Yield: true})
	return true
}
