package orchestrator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// member is an agent of the fleet, and what this run has for it.
type member struct {
	*agent.Agent
	key      string // names what is kept of it, permanently
	triggers *firing.Triggers
	failing  []firing.Failing
	unsent   *status.Unable
	// untended is told once it is true for the second time: a folder may be moved there and
	// back.
	untended struct {
		is   *status.Unable
		told bool
	}
	claim  *claim.Claim // its directory; nil while another one has it
	awaits *claim.Claim // what it gets once that one is gone; or nil
	live   session.Live
	// trail is what its queue looked like when its session was told of it last.
	trail   queue.Trail
	hold    memory.Hold // as it is saved for the next run, or zero
	empty   queue.Stamp // of the inbox, when it was found empty; or zero
	missing missing
	// cancelling wait for the result of a wish to cancel.
	cancelling []chan<- cancelled
	wake       chan struct{} // has a check tried at once
	look       chan struct{} // has one that runs compare itself with the queue
	voidCheck  func()        // ends the one that runs, if any
	// recalled is up to where what it has spent was read; nil: its first session of this
	// run has begun.
	recalled *usage.Mark
	outlived atomic.Bool // a session of an earlier run goes on, or what it has cost is not recorded
	// successors wait for its name or its directory.
	successors []*member

	doing   agent.Doing // what was begun for it
	timer   *time.Timer
	rings   time.Time // when timer does
	told    status.AgentState
	counts  bool // among those that a run with Once waits for
	gone    bool // it is no longer a member
	touched bool // something has happened to it
}

// missing is what was taken out of its inbox. It has a lock of its own, because
// dead letters are read with it.
type missing struct {
	sync.Mutex
	of queue.Lost
}

func newMember(cfg *config.Agent, now time.Time) *member {
	m := &member{Agent: agent.New(cfg, now), wake: make(chan struct{}, 1), look: make(chan struct{}, 1)}
	m.told = m.describe() // readers assume this
	return m
}

// describe returns what readers are told about a member.
func (m *member) describe() status.AgentState {
	d := m.Describe()
	d.Failing, d.Unsent = slices.Clone(m.failing), m.unsent
	if m.untended.told {
		d.Untended = m.untended.is
	}
	if m.triggers != nil {
		d.PausedTriggers = m.triggers.Paused()
		d.RefusedFires, d.RefusedRequests = m.triggers.Refused(), m.triggers.RefusedRequests()
	}
	return d
}

// release releases its directory.
func (m *member) release() {
	m.claim.Release()
	m.awaits.Release()
	m.claim, m.awaits = nil, nil
}

// tended says whether its requests for approval could be handled.
func (m *member) tended(err error, now time.Time) {
	u := &m.untended
	if err == nil {
		u.is, u.told = nil, false
		return
	}
	u.told, u.is = u.is != nil, unable(u.is, err, now)
}

// unable is what cannot be done now, or still.
func unable(still *status.Unable, err error, now time.Time) *status.Unable {
	if still != nil {
		now = still.Since
	}
	return &status.Unable{Since: now, Why: foreign.Text(err.Error())}
}
