package orchestrator

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/status"
)

// CollectGarbage is for a process that does nothing but run a scheduler of so many
// agents, unless GOGC says when its garbage is collected. With many agents it saves
// memory: it mostly waits. With few there is little to save, and a third of what a short
// run has to do would be that.
func CollectGarbage(agents int) {
	growth := 200 // percent; Go's is 100
	if agents > 500 {
		growth = 50
	}
	if was := debug.SetGCPercent(growth); was != 100 {
		debug.SetGCPercent(was)
	}
}

// Run runs the fleet until ctx ends or, with Once, until nothing is left to do.
// Then it lets turns finish within the fleet's shutdown-grace, unless EndNow is
// called. When it returns, no session is left.
func (s *Scheduler) Run(ctx context.Context) (*status.Summary, error) {
	j := journal.New(s.opt.Store, s.log, series.NewCounter().Count)
	defer func() {
		if err := j.Close(); err != nil {
			s.log.Warn(err.Error())
		}
	}()
	s.records.journal = j
	defer s.directories.release()
	defer s.writeFiles()()
	if err := s.getReady(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return s.summary(ErrShutdown), nil // asked to stop before anything ran
		}
		return nil, err
	}

	// Work goes on in a context of its own: the end of ctx begins the end of the
	// sessions, but does not interrupt what they are doing.
	work, quit := context.WithCancelCause(context.WithoutCancel(ctx))
	s.begin(work, quit)
	stopOnSignal := context.AfterFunc(ctx, func() { quit(ErrShutdown) })
	defer stopOnSignal()
	defer s.opt.limitOnce(quit)()
	s.happened(nil, func(time.Time) { s.fleet.stage, s.fleet.once.news = ready, true })
	s.opt.Ready()
	<-work.Done()
	s.opt.Step("ending the sessions")
	s.stop()
	s.drain()
	return s.summary(context.Cause(work)), nil
}

// begin starts everything that starts something.
func (s *Scheduler) begin(work context.Context, quit context.CancelCauseFunc) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.happened(nil, func(now time.Time) {
		s.work, s.fleet.quit, s.fleet.stage = work, quit, begun
		for _, m := range s.fleet.members {
			if m.Place() == agent.Lost {
				m.InspectLater(now)
			}
			s.fleet.touch(m)
		}
	})
	s.startTriggers(work)
	s.sendLater(work)
	s.wg.Go(func() { s.consent.Run(work) })
	s.queues.watch()
	s.wg.Go(func() { s.queues.around(work) })
	s.queues.lookAtAll(func(int) bool { return true })
}

// ends reports whether the run is stopping, or is asked to and has not begun with it: a reload
// is carried out first. The lock is held.
func (s *Scheduler) ends() bool {
	return s.fleet.stage == stopping || s.work != nil && s.work.Err() != nil
}

// stop starts nothing new and ends what runs: turns may finish within
// shutdown-grace, everything else ends at once.
func (s *Scheduler) stop() {
	s.changing.Lock() // a reload is carried out, or refused
	defer s.changing.Unlock()
	s.happened(nil, func(now time.Time) {
		s.fleet.stage = stopping
		grace := s.fleet.declared.ShutdownGrace
		s.fleet.stops = &status.Stopping{Since: now}
		if !s.fleet.endNow && grace > 0 {
			s.fleet.stops.Until = now.Add(grace)
		}
		for _, m := range s.fleet.members {
			s.fleet.touch(m)
			if s.fleet.endNow || grace <= 0 {
				m.Stop()
			} else {
				m.Finish(agent.FinishShutdown)
			}
		}
		if !s.fleet.endNow && grace > 0 && s.fleet.line.Count() > 0 {
			s.records.note(journal.Event{Kind: journal.Stopping, Detail: "turns may finish", Until: now.Add(grace)})
			s.log.Info("turns may finish; asked once more they are ended", "shutdown-grace", grace, "sessions", s.fleet.line.Count())
			time.AfterFunc(grace, s.EndNow)
		}
	})
}

// EndNow is the second stage of a stop: it ends the sessions of a run that was
// asked to stop, whatever they are doing. Their entries are recovered as after
// every interruption.
func (s *Scheduler) EndNow() {
	s.happened(nil, func(time.Time) {
		s.fleet.endNow = true
		if s.fleet.stage != stopping {
			return
		}
		s.fleet.stops.Until = time.Time{}
		for _, m := range s.fleet.members {
			m.Stop()
			s.fleet.touch(m)
		}
	})
}

// drainSays is how often a run that ends says what it waits for; drainPatience how long it
// waits for what goes on after the last session: longer than for any lock, but not for a
// directory that does not answer.
const (
	drainSays     = 10 * time.Second
	drainPatience = time.Minute
)

// drain waits for the end of the sessions and of what goes on beside them.
func (s *Scheduler) drain() {
	ended := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(ended)
	}()
	says := time.NewTicker(drainSays)
	defer says.Stop()
	for idle := time.Duration(0); idle < drainPatience; {
		select {
		case <-ended:
			return
		case <-says.C:
			s.mu.Lock()
			left := s.fleet.line.Count()
			s.mu.Unlock()
			if idle += drainSays; left > 0 {
				idle = 0
				s.log.Info("waiting for the end of sessions", "sessions", left)
			}
		}
	}
	s.log.Warn("not everything has ended: a directory does not answer", "agents", strings.Join(s.unended(), ", "))
}

// unended names the agents about which something still goes on.
func (s *Scheduler) unended() (names []string) {
	s.mu.Lock()
	members := slices.Clone(s.fleet.members)
	s.mu.Unlock()
	for _, m := range members {
		tended := s.consent.Tends(petitioner{s, m})
		s.mu.Lock()
		if tended || m.Doing() != agent.None {
			names = append(names, m.Name)
		}
		s.mu.Unlock()
	}
	return names
}
