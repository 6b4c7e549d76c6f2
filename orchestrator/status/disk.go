package status

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// Read collects the state of a fleet's agents from the disk and from live: the
// running scheduler's answer, or nil if none answered.
func Read(f *config.Fleet, stateDir string, live *Live, now time.Time) Fleet {
	all := Fleet{Fleet: f.Name, Agents: make([]Agent, 0, len(f.Agents))}
	says := map[string]*AgentState{}
	if live != nil {
		all.Scheduler, all.Doors, all.Store = &live.Run, live.Doors, live.Store
		for i, a := range live.Agents {
			says[a.Agent] = &live.Agents[i]
		}
	}
	paused, _ := memory.PausedOf(stateDir, f.Agents) // a run does not begin while that cannot be told
	pausedTriggers := sync.OnceValue(func() map[string][]memory.PausedTrigger { return memory.PausedTriggersOf(stateDir, f.Agents) })
	waiting := sync.OnceValue(func() []approval.Request {
		all, _ := store.Ask(context.Background(), stateDir, approval.Waiting) // no run begins with a store that cannot be read
		return all
	})
	budgets := BudgetsOf(f, stateDir, now)
	today := Spent(f, stateDir, usage.Day, now) // else nothing is shown
	for _, a := range f.Agents {
		on := look(a, stateDir)
		if says[a.Name] == nil && on.running {
			if by, is := owner.HadByOther(a, owner.Origin{File: f.Path, StateDir: stateDir}); is {
				on.other = by.Text(a.Dir, flock.Holder(a.Dir)) + ": what is queued goes to its sessions"
			}
		}
		if !on.running { // else the scheduler says it
			on.budget, on.pausedTriggers = budgets.Spent(a), pausedTriggers()[a.Name]
			on.approval = ApprovalOf(waiting(), func(r approval.Request) bool { return r.Agent == a.Name && r.HoldsUp(on.queue.aside) })
		}
		on.today = today[a.Name]
		if p := paused[a.Name]; paused != nil {
			on.paused = &p
		}
		all.Agents = append(all.Agents, merge(a, on, says[a.Name], now))
	}
	return all
}

func look(a *config.Agent, stateDir string) seen {
	var on seen
	switch kept, err := Published(stateDir, a.Name); {
	case err == nil:
		on.published = &kept
	case !errors.Is(err, fs.ErrNotExist):
		on.unknown = err
	}
	_, err := os.Stat(a.Dir)
	on.missing = errors.Is(err, fs.ErrNotExist)
	on.running = flock.Held(a.Dir)
	on.queue = lookAtQueue(a)
	return on
}

// Spent is what each agent's sessions have cost in a period that runs in its time zone; nil:
// that cannot be read.
func Spent(f *config.Fleet, stateDir string, in usage.Period, now time.Time) map[string]usage.Sum {
	all := map[string]usage.Sum{}
	err := usage.Read(stateDir, func(v *store.View) error {
		for _, a := range f.Agents {
			zone := a.Zone
			if zone == nil {
				zone = now.Location()
			}
			from, _ := in.Bounds(now.In(zone))
			sum, err := usage.Since(v, a.Name, from)
			if err != nil {
				return err
			}
			all[a.Name] = sum
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return all
}

// countBytes limits how many bytes of a queue are read to count its entries.
const countBytes = 8 << 20

func lookAtQueue(a *config.Agent) (on seenQueue) {
	on.err = queue.Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		on.obstacles = hiding(q.Obstacles())
		on.counted = q.CountDead(&on.dead) == nil // also where the queue asks a person
		if on.depth, err = q.Depth(countBytes); errors.Is(err, inbox.ErrNeedsOperator) {
			on.missing, _ = q.Missing() // the question says it, too
		}
		if err != nil {
			return err
		}
		if on.depth.Disturbed != "" {
			if on.missing, err = q.Missing(); err != nil {
				return err
			}
		}
		if on.depth.Aside > 0 {
			aside, err := q.Waiting()
			if err != nil {
				return err
			}
			for _, f := range aside {
				on.aside = append(on.aside, f.DeliveryID)
			}
		}
		on.flight, err = q.Peek()
		return err
	})
	return on
}

// Summarize returns an agent's last state together with what is still queued.
func Summarize(cfg *config.Agent, last AgentState) AgentSummary {
	row := AgentSummary{AgentState: last}
	l := queue.LookInto(cfg)
	row.Waiting = l.Depth.Aside
	if row.Queued = l.Depth.Entries; l.Err != nil {
		row.Unread = l.Err.Error()
	}
	return row
}

// publishedPath is where an agent's state is kept.
func publishedPath(stateDir, agent string) string {
	return filepath.Join(stateDir, "agents", agent+".json")
}

// Published returns the state of an agent as its last scheduler wrote it to the
// disk. If there is none, the error is fs.ErrNotExist.
func Published(stateDir, agent string) (st AgentState, err error) {
	return st, state.Load(publishedPath(stateDir, agent), &st)
}

// Resumed has readers know that an agent was resumed that no scheduler runs.
func Resumed(stateDir, agent string, now time.Time) (AgentState, error) {
	st, err := Published(stateDir, agent)
	if errors.Is(err, fs.ErrNotExist) {
		return AgentState{Agent: agent, State: Stopped}, nil
	}
	if err != nil {
		return st, err
	}
	if !st.Paused.IsZero() || st.State == Held || st.QueueLost != nil {
		st.State, st.Since, st.Reason, st.Fix, st.Lasts = Idle, now, "resumed by a person", "", false
		st.Paused, st.PausedUntil, st.PausedBy, st.QueueLost, st.Failures = time.Time{}, time.Time{}, "", nil, 0
		err = state.Put(publishedPath(stateDir, agent), st)
	}
	st.State = Stopped
	return st, err
}

// publishDelay is how long a published state may lag behind. Changes of an agent
// within that time become one write.
const publishDelay = 200 * time.Millisecond

// Publisher writes the agents' states to agents/NAME.json in the state directory,
// for readers that get no answer from the scheduler. The files are only for
// display, so they are not synced.
type Publisher struct {
	stateDir string
	log      *slog.Logger
	behind   *state.Behind
}

// NewPublisher returns a Publisher that writes once Run is called.
func NewPublisher(stateDir string, log *slog.Logger) *Publisher {
	return &Publisher{stateDir, log, state.NewBehind(publishDelay)}
}

// Put queues an agent's state for writing. It does not touch the disk.
func (p *Publisher) Put(a AgentState) {
	path := publishedPath(p.stateDir, a.Agent)
	p.behind.Put(path, func() {
		if err := state.Put(path, a); err != nil {
			p.log.Warn("cannot publish an agent's state", "agent", a.Agent, "err", err)
		}
	})
}

// Run writes queued states until ctx ends, then writes the rest and returns.
func (p *Publisher) Run(ctx context.Context) { p.behind.Run(ctx) }

// Flush waits until everything that was put is written.
func (p *Publisher) Flush() { p.behind.Flush() }
