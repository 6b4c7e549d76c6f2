package orchestrator

import (
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/queue"
)

// directories are what this run has locked, and looks after.
type directories struct{ *Scheduler }

// take locks each AGENT_DIR for the life of the run: one directory, one
// consumer. A directory that cannot be used stops only its own agent, unless there
// is no other.
func (d *directories) take() error {
	var errs, losses []error
	lost := map[*member]error{}
	for _, m := range d.fleet.members {
		claimed, err := claim.Take(m.Def())
		if _, held := errors.AsType[*claim.HeldError](err); held {
			errs = append(errs, err)
		} else if err != nil {
			claimed, lost[m] = claim.Lost(), err
			losses = append(losses, err)
		}
		m.claim = claimed
	}
	if len(errs) > 0 || len(lost) == len(d.fleet.members) {
		return claim.Joined(append(errs, losses...))
	}
	for m, err := range lost {
		d.happened(m, func(time.Time) { m.Loses(err.Error()) }) // begin looks for it
	}
	return nil
}

// release releases all of them.
func (d *directories) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.fleet.members {
		m.release()
	}
}

// has reports whether the directory under a member's path is the one that this run
// has locked.
func (d *directories) has(m *member, cfg *config.Agent) bool {
	d.mu.Lock()
	held := m.claim
	d.mu.Unlock()
	return held.Has(cfg)
}

// inspect detects that a member's directory is no longer the one that this run has
// locked: it was removed, or removed and created again. Nothing is started in it
// until it exists and is locked.
func (d *directories) inspect(m *member) {
	d.mu.Lock()
	cfg, before, claim, atRisk := m.Def(), m.Folders(), m.claim, m.AtRisk()
	d.mu.Unlock()
	l, missing := claim.Look(cfg, before), &atRisk
	if l.Differs != "" && l.Folders != nil {
		missing = queue.Recheck(cfg, atRisk)
	}
	half := l.Differs != "" || l.Folders == nil // half removed, or half created
	replaced := false
	d.happened(m, func(now time.Time) {
		if !d.fleet.has(m) || m.Def() != cfg || m.claim != claim {
			return
		}
		m.Sees(before, l.Differs, l.Folders, missing, now)
		switch {
		case m.Place() == agent.Retaking:
		case l.Missing != "":
			m.Loses(l.Missing)
		case l.Same:
			m.Finds("it is there again")
		default:
			replaced = true
			m.Replaced()
		}
		if half || m.Place() == agent.Lost {
			m.InspectLater(now)
		}
	})
	if replaced {
		d.retake(m, cfg)
	}
	d.queues.missing(m, cfg)
	d.queues.hinted(m)
}

// retake locks the directory that replaced the locked one.
func (d *directories) retake(m *member, cfg *config.Agent) {
	anew, err := claim.Lock(cfg)
	d.happened(m, func(now time.Time) {
		switch {
		case !d.fleet.has(m):
			anew.Release()
			return
		case err != nil:
			m.Loses(agent.FinishReplaced + ": " + err.Error())
			m.InspectLater(now)
			return
		}
		m.release()
		m.claim, m.empty = anew, noStamp
		m.Retaken(now)
		d.wg.Go(d.queues.watchAnew)
	})
}
