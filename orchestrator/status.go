package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/queue"
)

// Stopped is what `status` says of an agent that no scheduler runs.
const Stopped State = "stopped"

// AgentStatus is what can be known of an agent from the disk, with or without
// a scheduler.
type AgentStatus struct {
	AgentState
	// Depth is what is queued; Problem says why it is not known.
	Depth    inbox.Depth     `json:"depth"`
	InFlight *inbox.InFlight `json:"in_flight,omitempty"`
	Dead     int             `json:"dead_letters"`
	// DeadMore is true when there are more of them than were counted.
	DeadMore bool   `json:"dead_letters_more,omitempty"`
	Problem  string `json:"problem,omitempty"`
	// Attached is how many people who may type have joined the session;
	// Hush until when it is handed nothing because one of them has typed.
	Attached int       `json:"attached,omitempty"`
	Hush     time.Time `json:"hush,omitzero"`
	// Unread is true when the queue could not be read: then Depth, InFlight and
	// Dead say nothing.
	Unread bool `json:"unread,omitempty"`
	// Next is the next scheduled fire, or zero; Watches and Polls count the
	// triggers that have none.
	Next    time.Time `json:"next,omitzero"`
	Watches int       `json:"watches,omitempty"`
	Polls   int       `json:"polls,omitempty"`
}

// statusLook bounds how many bytes of a queue are counted for `status`.
const statusLook = 8 << 20

// Status looks at the agents of a fleet.
func Status(f *config.Fleet, stateDir string, now time.Time) []AgentStatus {
	all := make([]AgentStatus, 0, len(f.Agents))
	for _, a := range f.Agents {
		all = append(all, statusOf(a, stateDir, now))
	}
	return all
}

func statusOf(a *config.Agent, stateDir string, now time.Time) AgentStatus {
	st := AgentStatus{AgentState: AgentState{Agent: a.Name, State: Stopped}}
	switch kept, err := Published(stateDir, a.Name); {
	case err == nil:
		st.AgentState = kept
	case !errors.Is(err, fs.ErrNotExist):
		st.Problem = err.Error()
	}
	if _, err := os.Stat(a.Dir); errors.Is(err, fs.ErrNotExist) && st.Problem == "" {
		st.Problem = a.Dir + " is not there; heartbeat apply " + a.Name + " makes it"
	}
	running := flock.Held(a.Dir)
	if running && st.State == Stopped {
		st.State = Idle // it has done nothing yet
	}
	if !running {
		st.State, st.Phase, st.Work, st.Until, st.Failing, st.Lost, st.Stuck = Stopped, "", nil, time.Time{}, nil, "", nil
	} else if r, err := hook.ReadRecord(a.Home); err == nil && r != nil && r.Phase != hook.Ended {
		st.Phase, st.Work, st.Attached, st.Hush = r.Phase, r.Work, r.Attached, r.Hush()
	}
	lookAtQueue(a, &st)
	lookAtTriggers(a, &st, now)
	return st
}

func lookAtQueue(a *config.Agent, st *AgentStatus) {
	q, err := queue.Open(a)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer q.Close()
		err = readQueue(q, st)
	}
	if err != nil {
		st.Problem, st.Unread = err.Error(), true
	}
}

func readQueue(q *inbox.Queue, st *AgentStatus) (err error) {
	if st.Depth, err = q.Depth(statusLook); err != nil {
		return err
	}
	if st.InFlight, err = q.Peek(); err != nil {
		return err
	}
	var dead inbox.DeadCount
	err = q.CountDead(&dead)
	st.Dead, st.DeadMore = dead.Entries, dead.More
	return err
}

func lookAtTriggers(a *config.Agent, st *AgentStatus, now time.Time) {
	for _, t := range a.Triggers {
		switch {
		case t.Cron != nil:
			if n := firing.NextFire(a, &t, now); !n.IsZero() && (st.Next.IsZero() || n.Before(st.Next)) {
				st.Next = n
			}
		case t.Watch != nil:
			st.Watches++
		case t.Poll != nil:
			st.Polls++
		}
	}
}
