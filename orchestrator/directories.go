package orchestrator

import (
	"errors"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
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
		claimed, err := d.fleet.locks.Take(m.Def())
		if other := d.fleet.holder(claimed, m); other != nil {
			claimed.Release()
			err = stillHas(other)
		}
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
	was := visit{m.Def(), m.claim, m.Folders(), m.AtRisk()}
	rests := m.live == nil && m.State() == status.Idle && m.InPlace()
	d.mu.Unlock()
	// Most looks are at agents that rest, and find what was known: no event.
	if l := was.claim.Look(was.cfg, was.folders); !rests || !l.Same || !slices.Equal(l.Folders, was.folders) {
		d.finds(m, was, l)
	}
	d.queues.missing(m, was.cfg)
	d.queues.hinted(m)
}

// visit is what a member had when its directory was looked at.
type visit struct {
	cfg     *config.Agent
	claim   *claim.Claim
	folders session.Ground
	atRisk  session.Loss
}

// finds takes what a look at a member's directory has found.
func (d *directories) finds(m *member, was visit, l claim.Look) {
	missing := &was.atRisk
	if l.Differs != "" && l.Folders != nil {
		missing = queue.Recheck(was.cfg, was.atRisk)
	}
	half := l.Differs != "" || l.Folders == nil // half removed, or half created
	replaced := false
	d.happened(m, func(now time.Time) {
		if !d.fleet.has(m) || m.Def() != was.cfg || m.claim != was.claim {
			return
		}
		m.Sees(was.folders, l.Differs, l.Folders, missing, now)
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
		d.retake(m, was.cfg)
	}
}

// retake locks the directory that replaced the locked one. Where another member has that, it
// is taken over as soon as nothing of that one goes on there and its own path leads elsewhere.
func (d *directories) retake(m *member, cfg *config.Agent) {
	anew, err := d.fleet.locks.Lock(cfg)
	d.happened(m, func(now time.Time) {
		if !d.fleet.has(m) {
			anew.Release()
			return
		}
		other := d.fleet.holder(anew, m)
		if other != nil && !(other.Rests() && other.Place() != agent.Ours) {
			anew.Release()
			err = stillHas(other)
		}
		if err != nil {
			m.Displaced(agent.FinishReplaced + ": " + err.Error())
			m.InspectLater(now)
			return
		}
		if other != nil {
			other.release()
			other.claim = claim.Lost()
			other.InspectLater(now)
		}
		m.release()
		m.claim, m.empty = anew, noStamp
		m.Retaken(now)
		d.wg.Go(d.queues.watchAnew)
	})
}
