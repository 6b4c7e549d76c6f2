package orchestrator

import (
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// Why sessions are told to finish.
const (
	finishShutdown = "the scheduler is stopping"
	finishRemoved  = "the agent was removed from the configuration"
	finishChanged  = "the agent's definition changed"
	finishSlotTime = "other agents wait for its slot"
)

// stop starts nothing new and ends what runs: turns may finish within
// shutdown-grace, everything else ends at once.
func (s *Scheduler) stop() {
	s.changing.Lock() // a reload is carried out, or refused
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, a := range s.agents {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
	if s.spacing.timer != nil {
		s.spacing.timer.Stop()
	}
	grace := s.fleet.ShutdownGrace
	if s.endNow || grace <= 0 {
		s.endNowLocked()
		return
	}
	for _, a := range s.agents {
		if a.live != nil {
			s.finishLocked(a, finishShutdown)
		}
	}
	if s.slots.Count() > 0 {
		s.note(journal.Event{Kind: journal.Stopping, Detail: "turns may finish", Until: time.Now().Add(grace)})
		s.log.Info("turns may finish; asked once more they are ended", "shutdown-grace", grace, "sessions", s.slots.Count())
		time.AfterFunc(grace, s.EndNow)
	}
}

// EndNow is the second stage of a stop: it ends the sessions of a run that
// was asked to stop, whatever they are doing. Their entries are recovered as
// after every interruption.
func (s *Scheduler) EndNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endNow = true; s.stopping {
		s.endNowLocked()
	}
}

func (s *Scheduler) endNowLocked() {
	s.endNow = true
	for _, a := range s.agents {
		if a.live != nil {
			a.live.Order(session.Order{Stop: true, Shutdown: true})
		}
	}
}

// finishOnceLocked ends a run with Once when nothing is left to do: nothing is
// queued, in flight or backing off. Agents that are held or parked are left.
func (s *Scheduler) finishOnceLocked() {
	if !s.opt.Once || s.stopping || s.fires > 0 {
		return
	}
	for _, a := range s.agents {
		if a.expected() || a.recovering || a.state != Idle && a.state != Held && a.state != Parked {
			return
		}
	}
	for _, a := range s.agents {
		if a.state == Idle && a.owed != nil {
			return
		}
		if a.state != Idle || a.lost != "" || a.empty.Still(a.cfg.Inbox) {
			continue
		}
		if l := queue.LookInto(a.cfg); l.Err != nil || hasWork(l.Depth) || l.Depth.Tail {
			return
		}
	}
	s.quit(errFinished)
}
