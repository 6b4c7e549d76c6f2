package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
)

// AgentState is what `run` keeps of an agent for `status`, which may be asked
// without a scheduler: agents/NAME.json in the state directory.
type AgentState struct {
	Agent  string       `json:"agent"`
	State  State        `json:"state"`
	Since  time.Time    `json:"since"`
	Until  time.Time    `json:"until,omitzero"`
	Reason foreign.Text `json:"reason,omitempty"`
	// Failures counts sessions in a row that failed and did no entry.
	Failures int `json:"failures,omitempty"`
	// Paused is since when a person wants nothing started for it.
	Paused time.Time `json:"paused,omitzero"`
	// PausedBy is the agent whose session asked for that; "": a person.
	PausedBy string           `json:"paused_by,omitempty"`
	Session  string           `json:"session,omitempty"`
	Phase    hook.Phase       `json:"phase,omitempty"`
	Work     *hook.Work       `json:"work,omitempty"`
	Last     *session.Outcome `json:"last,omitempty"`
	// Acknowledged and DeadLettered count over the present run.
	Acknowledged int `json:"acknowledged"`
	DeadLettered int `json:"dead_lettered"`
	// Lost is what is wrong with the agent's directory while nothing can be
	// started in it, or "".
	Lost string `json:"lost,omitempty"`
	// QueueLost is what was lost with the queue's folder, until a person resumes
	// the agent.
	QueueLost *QueueLoss `json:"queue_lost,omitempty"`
	// Stuck is work that the service refuses again and again.
	Stuck *Stuck `json:"stuck,omitempty"`
	// Failing are the triggers that do not work.
	Failing []firing.Failing `json:"failing,omitempty"`
}

// NeedsPerson reports whether nothing starts until a person resumes the agent,
// who has not paused it themselves, or brings its directory back; or whether
// accepted prompts are gone, or work does not move, which somebody has to know.
func (a AgentState) NeedsPerson() bool {
	return a.Lost != "" || a.QueueLost != nil || a.Stuck != nil && a.Stuck.Told || a.State == Held && a.Paused.IsZero()
}

// statePath is where an agent's state is kept.
func statePath(stateDir, agent string) string {
	return filepath.Join(stateDir, "agents", agent+".json")
}

// Published returns what the scheduler that ran an agent last has published of
// it. Where it has published nothing the error is fs.ErrNotExist.
func Published(stateDir, agent string) (st AgentState, err error) {
	return st, state.Load(statePath(stateDir, agent), &st)
}

// publishDelay is how old what `status` reads may be, and how close after
// each other an agent's changes become one write.
const publishDelay = 200 * time.Millisecond

// publishLocked has an agent's state written for `status`. The file is for
// reading only, so it is not synced.
func (s *Scheduler) publishLocked(a *agent) {
	if a.expected() {
		return
	}
	path, now := statePath(s.opt.StateDir, a.name), s.describeLocked(a)
	s.published.Put(path, func() {
		if err := state.Put(path, now); err != nil {
			s.log.Warn("cannot publish an agent's state", "agent", now.Agent, "err", err)
		}
	})
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

// Summary is how a run ended.
type Summary struct {
	// Finished is true when a run with Once had nothing left to do.
	Finished bool `json:"finished"`
	// Unfired counts triggers that --fire could not fire.
	Unfired int            `json:"unfired,omitempty"`
	Agents  []AgentSummary `json:"agents"`
}

// AgentSummary is what a run did for one agent.
type AgentSummary struct {
	AgentState
	Queued int `json:"queued"`
	// Unread is why it is not known what is queued, or "".
	Unread string `json:"unread,omitempty"`
}

// Verdict says what a run with Once came to.
type Verdict string

// The verdicts, the worst one counts.
const (
	AllDone    Verdict = "done"
	SomeParked Verdict = "parked"
	SomeLeft   Verdict = "left" // dead-lettered, held, still queued, or not fired
)

func (v Verdict) rank() int { return slices.Index([]Verdict{AllDone, SomeParked, SomeLeft}, v) }

// Verdict judges a run with Once: each agent's part, and whether it came to its
// end.
func (s *Summary) Verdict() Verdict {
	v := AllDone
	if !s.Finished || s.Unfired > 0 {
		v = SomeLeft
	}
	for _, a := range s.Agents {
		if of := a.Verdict(); of.rank() > v.rank() {
			v = of
		}
	}
	return v
}

// Verdict judges what a run with Once did for one agent.
func (a AgentSummary) Verdict() Verdict {
	switch {
	case a.State == Held || a.Lost != "" || a.Unread != "" || a.DeadLettered > 0 || len(a.Failing) > 0 || a.Queued > 0 && a.State != Parked:
		return SomeLeft
	case a.State == Parked:
		return SomeParked
	}
	return AllDone
}

// Why says why an agent is in its state, or why it is not done; "" where it is
// idle and done.
func (a AgentSummary) Why() string {
	switch {
	case a.State != Idle:
		return a.Reason.String()
	case a.Lost != "" || a.Unread != "":
		return cmp.Or(a.Lost, a.Unread)
	case len(a.Failing) > 0:
		return "trigger " + a.Failing[0].Trigger + ": " + a.Failing[0].Why.String()
	case a.DeadLettered > 0:
		return fmt.Sprintf("%d given up", a.DeadLettered)
	case a.Queued > 0:
		return fmt.Sprintf("%d still queued", a.Queued)
	}
	return ""
}

func (s *Scheduler) summary(cause error) *Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := &Summary{Finished: errors.Is(cause, errFinished), Unfired: s.unfired}
	for a := range s.shownLocked() {
		row := AgentSummary{AgentState: s.describeLocked(a)}
		l := queue.LookInto(a.cfg)
		if row.Queued = l.Depth.Entries; l.Err != nil {
			row.Unread = l.Err.Error()
		}
		s.publishLocked(a)
		sum.Agents = append(sum.Agents, row)
	}
	return sum
}

// finishOnceLocked ends a run with Once when nothing is left to do: nothing is
// queued, in flight or backing off. Agents that are held or parked are left.
func (s *Scheduler) finishOnceLocked() {
	if !s.opt.Once || s.stopping || s.fires > 0 {
		return
	}
	for _, a := range s.agents {
		if a.expected() || a.recovering || a.state != Idle && a.state != Held && a.state != Parked {
			return
		}
	}
	for _, a := range s.agents {
		if a.state == Idle && a.owed != nil {
			return
		}
		if a.state != Idle || a.lost != "" || a.empty.Still(a.cfg.Inbox) {
			continue
		}
		if l := queue.LookInto(a.cfg); l.Err != nil || hasWork(l.Depth) || l.Depth.Tail {
			return
		}
	}
	s.quit(errFinished)
}
