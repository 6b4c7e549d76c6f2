package orchestrator

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// getReady takes the directories and puts right what earlier runs left.
func (s *Scheduler) getReady(ctx context.Context) error {
	if err := claim.EnoughDescriptors(len(s.agents), s.fleet.MaxSessions); err != nil {
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

// recoveriesAtOnce bounds how many agents are recovered at once.
func recoveriesAtOnce() int { return 4 * runtime.GOMAXPROCS(0) }
