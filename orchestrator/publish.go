package orchestrator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
)

// Readers are told in the words of the room status.
type (
	// State is what an agent is doing.
	State = status.State
	// AgentState is what the Scheduler says of an agent.
	AgentState = status.AgentState
	// Summary is how a run ended.
	Summary = status.Summary
)

// The states.
const (
	Idle       = status.Idle
	Waiting    = status.Waiting
	Starting   = status.Starting
	Running    = status.Running
	Ending     = status.Ending
	BackingOff = status.BackingOff
	Parked     = status.Parked
	Held       = status.Held
)

// publishLocked has an agent's state written for readers.
func (s *Scheduler) publishLocked(a *agent) {
	if !a.expected() {
		s.published.Put(s.describeLocked(a))
	}
}

// writeFiles writes what is to be read by others until the function that it
// returns is called, and then what is left of it.
func (s *Scheduler) writeFiles() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	writers.Go(func() { s.published.Run(ctx) })
	writers.Go(func() { s.firing.Record(ctx) })
	return func() {
		cancel()
		writers.Wait()
	}
}

// Snapshot returns what the agents are doing now.
func (s *Scheduler) Snapshot() []AgentState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]AgentState, 0, len(s.agents))
	for a := range s.shownLocked() {
		all = append(all, s.describeLocked(a))
	}
	return all
}

func (s *Scheduler) describeLocked(a *agent) AgentState {
	d := AgentState{
		Agent: a.name, State: a.state, Paused: a.paused, PausedBy: a.pausedBy, Since: a.since, Until: a.until, Reason: foreign.Text(a.reason), Failures: a.history.failures,
		Session: a.session, Last: a.outcome, Acknowledged: a.acknowledged, DeadLettered: a.deadLettered,
		Failing: slices.Clone(a.failing), Lost: a.lost, QueueLost: a.loss,
	}
	if a.stuck != nil {
		d.Stuck = new(*a.stuck)
	}
	if a.live != nil {
		d.Phase, d.Work = a.last.Phase, a.last.Work
		d.Acknowledged += a.last.Acknowledged
	}
	return d
}

func (s *Scheduler) summary(cause error) *Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := &Summary{Finished: errors.Is(cause, errFinished), Unfired: s.unfired}
	for a := range s.shownLocked() {
		s.publishLocked(a)
		sum.Agents = append(sum.Agents, status.Summarize(a.cfg, s.describeLocked(a)))
	}
	return sum
}

// Backlog looks at the agents' queues, without the scheduler's lock: at most
// every status.BacklogFor.
func (s *Scheduler) Backlog() []status.Backlog { return s.backlogs.Look(s.queues) }

// queues are the agents' queues as far as the Scheduler knows of them.
func (s *Scheduler) queues() []status.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]status.Queue, 0, len(s.agents))
	for a := range s.shownLocked() {
		all = append(all, status.Queue{Agent: a.cfg, Idle: a.state == Idle})
	}
	return all
}
