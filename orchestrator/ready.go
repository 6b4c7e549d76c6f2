package orchestrator

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// getReady takes the directories and puts right what earlier runs left.
func (s *Scheduler) getReady(ctx context.Context) error {
	if err := enoughDescriptors(len(s.agents), s.fleet.MaxSessions); err != nil {
		return err
	}
	if err := s.takeDirectories(); err != nil {
		return err
	}
	if err := s.identify(); err != nil {
		return err
	}
	s.inherit()
	if err := s.loadPauses(); err != nil {
		return err
	}
	return s.cleanUp(ctx)
}

// cleanUp ends what earlier runs left and recovers their orphans.
func (s *Scheduler) cleanUp(ctx context.Context) error {
	swept, err := session.SweepLeftovers(ctx, s.opt.StateDir, "", sweepGrace)
	for _, l := range swept {
		s.note(journal.Event{Agent: l.Agent, Kind: journal.Swept, Session: l.Session, Detail: "processes of a dead session were ended"})
		s.log.Warn("ended what a dead session had left", "agent", l.Agent, "session", l.Session)
	}
	if err != nil {
		s.log.Warn("cannot end all that dead sessions left", "err", err)
	}
	return s.recoverAll(ctx)
}

// progressEvery is how often a start that takes long says how far it is.
const progressEvery = 2 * time.Second

// recoverAll recovers what was in flight, several agents at once.
func (s *Scheduler) recoverAll(ctx context.Context) error {
	var done atomic.Int64
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-progress.C:
				s.log.Info("recovering", "done", done.Load(), "agents", len(s.agents))
			}
		}
	}()
	var all errgroup.Group
	all.SetLimit(recoveriesAtOnce())
	for _, a := range s.agents {
		all.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			s.opt.Step(a.name + ": recovering")
			s.recoverLeft(ctx, a, a.cfg)
			done.Add(1)
			return nil
		})
	}
	_ = all.Wait() // an agent that fails is backed off, alone
	return ctx.Err()
}

// Files that are open at once: a directory for each agent; for each session
// its pipes and a queue that is looked into; the rest of a process.
const (
	openPerSession = 8
	openBeside     = 256
)

// DescriptorsError means that a process may not open as many files as a fleet
// takes.
type DescriptorsError struct{ Need, Have uint64 }

// Error says how many.
func (e *DescriptorsError) Error() string {
	return fmt.Sprintf("cannot run the fleet: it takes %d open files, the limit is %d", e.Need, e.Have)
}

// Hint says what to do.
func (e *DescriptorsError) Hint() string {
	return fmt.Sprintf("raise the limit: `ulimit -Hn %d` (LimitNOFILE=%d in a systemd unit), or run fewer agents", e.Need, e.Need)
}

// recoveriesAtOnce bounds how many agents are recovered at once.
func recoveriesAtOnce() int { return 4 * runtime.GOMAXPROCS(0) }

// enoughDescriptors checks the limit of open files. The soft one was raised to
// the hard one when the process started (package os).
func enoughDescriptors(agents, sessions int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // it shows when a directory cannot be opened
	}
	need := uint64(agents + openPerSession*min(sessions, agents) + openBeside)
	if have := uint64(limit.Cur); have < need {
		return &DescriptorsError{Need: need, Have: have}
	}
	return nil
}
