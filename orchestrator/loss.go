package orchestrator

import (
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// queueGoneLocked takes what a look at the folders of a queue has found: what is
// not as it was before, or "", and what is there now. It notices a loss while no
// session lives; what is known of a session's own queue its shim tells.
func (s *Scheduler) queueGoneLocked(a *agent, before, now session.Ground, what string) {
	if a.live != nil || a.state == Starting || !slices.Equal(a.folders, before) {
		return // looked at before it began, or after its end
	}
	switch {
	case what == "":
		a.folderGone = time.Time{}
		if now != nil {
			a.folders = now
		}
		return
	case a.folderGone.IsZero():
		a.folderGone = time.Now()
		return
	case time.Since(a.folderGone) < session.GroundPatience:
		return
	}
	if a.queued > 0 || a.owed != nil || a.halted != nil {
		s.queueLostLocked(a, session.Loss{What: what, Queued: a.queued, InFlight: a.halted})
	}
	a.folders, a.folderGone, a.queued, a.owed, a.halted = now, time.Time{}, 0, nil, nil
}

// countLater has what is queued for an agent that does not start counted after
// a while: an agent that may start is looked into anyway.
func (s *Scheduler) countLater(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.counting || a.live != nil || a.state == Idle || a.state == Starting || s.stopping || a.removed {
		return
	}
	a.counting = true
	cfg := a.cfg
	time.AfterFunc(countDelay, func() {
		l := queue.LookInto(cfg)
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.counting = false; l.Err == nil && l.Depth.Entries > 0 && a.cfg == cfg {
			a.queued = l.Depth.Entries
		}
	})
}

// countDelay is how old may be what is known of such a queue.
const countDelay = 2 * time.Second

// queueLostLocked tells that prompts are gone.
func (s *Scheduler) queueLostLocked(a *agent, l session.Loss) {
	a.loss = &status.QueueLoss{At: time.Now(), Loss: l}
	s.note(journal.Event{Agent: a.name, Kind: journal.QueueLost, Reason: foreign.Text(l.What), Detail: foreign.Text(l.String()), Session: a.session})
	s.log.Error("a queue is lost", "agent", a.name, "what", l.String())
	s.publishLocked(a)
}
