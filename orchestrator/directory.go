package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// claim is an agent's directory as this run has locked it. The lock keeps its
// inode from being used again, so another directory under the path is told
// from it for certain.
type claim struct {
	unlock func() error
	dir    os.FileInfo
}

// takeDirectory locks an AGENT_DIR: one directory, one consumer.
func takeDirectory(c *config.Agent) (*claim, error) {
	// The workspace itself is the person's: made like any other folder.
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot prepare agent %q: %w", c.Name, err)
	}
	return lockDirectory(c)
}

// furnish wires a directory in which nothing of ours stands yet, and makes the
// folder of its queue. What cannot be wired shows now, and not with the first
// prompt.
func (s *Scheduler) furnish(c *config.Agent) error {
	if _, err := os.Lstat(c.Home); !errors.Is(err, fs.ErrNotExist) {
		return nil // what has drifted is wired before each session
	}
	_, err := s.opt.Prepare(c)
	if unmade := MakeHome(c); err == nil {
		return unmade
	}
	return err
}

// IgnoreFile is in .heartbeat and keeps all of it out of git; Ignored is what
// it says.
const IgnoreFile, Ignored = ".gitignore", "*\n"

// MakeHome makes .heartbeat, which git ignores as a whole, in an agent's
// directory that has none, but not the directory: who makes that anew may want
// it empty.
func MakeHome(c *config.Agent) error {
	home, err := durable.OpenBelow(c.Dir, c.Home)
	if err == nil {
		return home.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if home, err = durable.MakeBelow(c.Dir, c.Home); err == nil {
			err = errors.Join(home.Replace(IgnoreFile, []byte(Ignored)), home.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make the queue's folder of agent %q: %w", c.Name, err)
	}
	return nil
}

func lockDirectory(c *config.Agent) (*claim, error) {
	unlock, err := flock.TryLockFolder(c.Dir)
	if errors.Is(err, flock.ErrHeld) {
		return nil, heldError(c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of agent %q: %w", c.Name, err)
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot prepare agent %q: %w", c.Name, err), unlock())
	}
	return &claim{unlock: unlock, dir: info}, nil
}

// release gives an agent's directory back.
func (a *agent) release() {
	if a.claim != nil {
		_ = a.claim.unlock()
		a.claim = nil
	}
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
	cfg, before := a.cfg, a.folders
	s.mu.Unlock()
	info, err := os.Lstat(cfg.Dir)
	what, now := before.Differs(), groundOf(cfg)

	s.mu.Lock()
	if a.cfg == cfg && s.hasLocked(a) {
		s.queueGoneLocked(a, before, now, what)
	}
	replaced := false
	switch {
	case !s.hasLocked(a) || a.retaking || a.cfg != cfg:
	case err != nil:
		s.lostLocked(a, missing(cfg, err))
	case os.SameFile(info, a.claim.dir):
		s.foundAgainLocked(a, "it is there again")
	default:
		replaced, a.retaking = true, true
	}
	s.mu.Unlock()
	if replaced {
		s.retake(a, cfg)
	}
	s.mu.Lock()
	if s.hasLocked(a) && (a.lost != "" || what != "" || now == nil) {
		s.inspectAgainLocked(a)
	}
	s.mu.Unlock()
	s.hinted(a)
}

// has reports whether the directory under an agent's path is the one that this
// run has locked.
func (s *Scheduler) has(a *agent, cfg *config.Agent) bool {
	info, err := os.Lstat(cfg.Dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && a.claim != nil && os.SameFile(info, a.claim.dir)
}

// hasLocked reports whether an agent has its directory in this run.
func (s *Scheduler) hasLocked(a *agent) bool { return !s.stopping && !a.removed && a.claim != nil }

func missing(cfg *config.Agent, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return cfg.Dir + " is not there; heartbeat apply " + cfg.Name + " makes it"
	}
	return err.Error()
}

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
	anew, err := lockDirectory(cfg)
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
		_ = anew.unlock()
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
