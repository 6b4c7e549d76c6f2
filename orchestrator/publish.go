package orchestrator

import (
	"context"
	"errors"
	"sync"

	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// writeFiles writes what others read until the function that it returns is called,
// and then what is left of it.
func (s *Scheduler) writeFiles() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	writers.Go(func() { s.published.Run(ctx) })
	return func() {
		cancel()
		writers.Wait()
		s.opt.Store.Pay()
	}
}

// tell returns when readers find what was done, in the states of agents and in the journal. Who
// did it is answered after that.
func (s *Scheduler) tell() {
	s.published.Flush()
	if err := s.records.journal.Flush(); err != nil {
		s.log.Warn(err.Error())
	}
}

// Snapshot returns what the agents are doing now.
func (s *Scheduler) Snapshot() []status.AgentState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]status.AgentState, 0, len(s.fleet.members))
	for m := range s.fleet.shown() {
		all = append(all, m.describe())
	}
	return all
}

// StoreTroubles are what is wrong with the fleet's store.
func (s *Scheduler) StoreTroubles() []store.Trouble { return s.opt.Store.Troubles() }

// Stopping says how far the run is with its end; nil: nobody asked for it.
func (s *Scheduler) Stopping() *status.Stopping {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fleet.stops == nil {
		return nil
	}
	return new(*s.fleet.stops)
}

func (s *Scheduler) summary(cause error) *status.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := &status.Summary{Finished: errors.Is(cause, errFinished), Unfired: s.fleet.once.unfired}
	for m := range s.fleet.shown() {
		s.publish(m)
		sum.Agents = append(sum.Agents, status.Summarize(m.Def(), m.describe()))
	}
	return sum
}

// Backlog looks into the agents' queues, without the scheduler's lock: at most
// every status.BacklogFor.
func (s *Scheduler) Backlog() []status.Backlog { return s.queues.backlogs.Look(s.queues.all) }
