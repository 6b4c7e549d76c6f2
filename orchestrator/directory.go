package orchestrator

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// furnish wires a directory in which nothing of ours stands yet, and makes the
// folder of its queue. What cannot be wired shows now, and not with the first
// prompt.
func (s *Scheduler) furnish(c *config.Agent) error {
	if claim.Furnished(c) {
		return nil // what has drifted is wired before each session
	}
	_, err := s.opt.Prepare(c)
	if unmade := claim.MakeHome(c); err == nil {
		return unmade
	}
	return err
}

// release gives an agent's directory back.
func (a *agent) release() {
	a.claim.Release()
	a.claim = nil
}

// lostEvery is how often a directory that is lost is looked for.
const lostEvery = time.Second

// finishReplaced is why a session ends whose directory is another one now.
const finishReplaced = "its directory was replaced"

// inspect notices that an agent's directory is not the one any more that this
// run has locked: that it was removed, or removed and made again. Nothing is
// started in it until it is there and locked.
func (s *Scheduler) inspect(a *agent) {
	s.mu.Lock()
	cfg, before, held := a.cfg, a.folders, a.claim
	s.mu.Unlock()
	l := held.Look(cfg, before)

	s.mu.Lock()
	if a.cfg == cfg && s.hasLocked(a) {
		s.queueGoneLocked(a, before, l.Folders, l.Differs)
	}
	replaced := false
	switch {
	case !s.hasLocked(a) || a.retaking || a.cfg != cfg || a.claim != held:
	case l.Missing != "":
		s.lostLocked(a, l.Missing)
	case l.Same:
		s.foundAgainLocked(a, "it is there again")
	default:
		replaced, a.retaking = true, true
	}
	s.mu.Unlock()
	if replaced {
		s.retake(a, cfg)
	}
	s.mu.Lock()
	if s.hasLocked(a) && (a.lost != "" || l.Differs != "" || l.Folders == nil) {
		s.inspectAgainLocked(a)
	}
	s.mu.Unlock()
	s.hinted(a)
}

// has reports whether the directory under an agent's path is the one that this
// run has locked.
func (s *Scheduler) has(a *agent, cfg *config.Agent) bool {
	s.mu.Lock()
	held := a.claim
	s.mu.Unlock()
	return held.Has(cfg)
}

// hasLocked reports whether an agent has its directory in this run.
func (s *Scheduler) hasLocked(a *agent) bool { return !s.stopping && !a.removed && a.claim != nil }

// inspectAgainLocked is for what may be half removed or half made.
func (s *Scheduler) inspectAgainLocked(a *agent) {
	if a.inspecting {
		return
	}
	a.inspecting = true
	time.AfterFunc(lostEvery, func() {
		s.mu.Lock()
		a.inspecting = false
		s.mu.Unlock()
		s.inspect(a)
	})
}

func (s *Scheduler) lostLocked(a *agent, why string) {
	if a.lost == why {
		return
	}
	s.noteLostLocked(a, why)
	if a.state == Waiting { // or it would keep others from the slot
		s.enterLocked(a, Idle, why, time.Time{})
		s.slotFreedLocked()
	}
	s.finishOnceLocked()
}

func (s *Scheduler) noteLostLocked(a *agent, why string) {
	a.lost = why
	s.note(journal.Event{Agent: a.name, Kind: journal.DirectoryLost, Reason: foreign.Text(why)})
	s.log.Error("an agent's directory is lost; nothing is started in it", "agent", a.name, "why", why)
	s.publishLocked(a)
}

func (s *Scheduler) foundAgainLocked(a *agent, how string) {
	if a.lost == "" {
		return
	}
	a.lost = ""
	s.note(journal.Event{Agent: a.name, Kind: journal.DirectoryFound, Reason: foreign.Text(how)})
	s.log.Warn("an agent's directory was found again", "agent", a.name, "how", how)
	s.publishLocked(a)
}

// retake locks the directory that stands where the locked one did. What went
// wrong in that one says nothing about it.
func (s *Scheduler) retake(a *agent, cfg *config.Agent) {
	anew, err := claim.Lock(cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.retaking = false
	switch {
	case err != nil:
		if s.hasLocked(a) {
			s.lostLocked(a, "its directory was replaced: "+err.Error())
		}
		return
	case !s.hasLocked(a):
		anew.Release()
		return
	}
	s.lostLocked(a, "its directory was replaced")
	a.release()
	a.claim, a.empty, a.owed = anew, queue.Stamp{}, nil
	s.foundAgainLocked(a, "another directory stands in its place; it is locked now")
	s.wg.Go(s.watchAnew)
	switch a.state {
	case Idle, Waiting, BackingOff, Parked:
		if !a.recovering {
			a.history = history{}
			s.recoverLocked(a, finishReplaced)
		}
	case Running, Ending: // in a directory that is no more
		if a.live != nil {
			a.live.Order(session.Order{Stop: true, Finish: finishReplaced})
		}
	case Starting, Held:
	}
}

// watchAnew has the inboxes watched where they are now.
func (s *Scheduler) watchAnew() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	over := s.stopping || s.work == nil
	s.mu.Unlock()
	if !over {
		s.watchInboxes(s.work)
	}
}
