// Package status describes the state of a fleet to its readers: `status`, `send`,
// doctor, metrics, the end of a run. The scheduler reports what its agents do
// (AgentState) and writes it to the state directory. The disk shows what is in
// their queues and sessions, with or without a scheduler (disk.go). merge.go
// combines the two; needs.go and words.go turn the result into what a person wants
// to know: what is wrong and what to type. It decides nothing about agents.
package status

import (
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/usage"
)

// State is what an agent is doing.
type State string

// The states. An agent is in one at a time.
const (
	Idle       State = "idle"        // nothing to do
	Waiting    State = "waiting"     // work is queued, no session slot is free
	Starting   State = "starting"    // its settings are applied and its session is started
	Running    State = "running"     // it has a live session
	Ending     State = "ending"      // its session is being ended
	BackingOff State = "backing-off" // until a time, after a failure
	Parked     State = "parked"      // usage limit or authentication of the account: until a time
	Checking   State = "checking"    // what its last session has left is being checked
	Held       State = "held"        // after too many failures, or paused: needs a person
	// Stopped is shown for an agent that no scheduler runs.
	Stopped State = "stopped"
)

// States returns all states that an agent of a running fleet can be in.
func States() []State {
	return []State{Idle, Waiting, Starting, Running, Ending, BackingOff, Parked, Checking, Held}
}

// AgentState is what the scheduler reports about an agent.
type AgentState struct {
	Agent  string       `json:"agent"`
	State  State        `json:"state"`
	Since  time.Time    `json:"since,omitzero"`
	Until  time.Time    `json:"until,omitzero"`
	Reason foreign.Text `json:"reason,omitempty"`
	// Fix is what to change against Reason, where that is known. GoesOn is true for an
	// agent that continues by itself once that is changed or, idle, soon.
	Fix    foreign.Text `json:"fix,omitempty"`
	GoesOn bool         `json:"goes_on,omitempty"`
	// Lasts is true while the agent is held until a person resumes it or its
	// definition changes, also after a restart.
	Lasts bool `json:"lasts,omitempty"`
	// OverBudget is true when the agent is parked, or would be by the next run, because a
	// budget is used up.
	OverBudget bool `json:"over_budget,omitempty"`
	// LeavesRoom is true when the agent is parked because limits: in the file leaves the rest of
	// its account's limits to people.
	LeavesRoom bool `json:"leaves_room,omitempty"`
	// Failures counts consecutive sessions that failed without an entry done.
	Failures int `json:"failures,omitempty"`
	// Paused is when somebody paused the agent; zero: it is not paused.
	Paused time.Time `json:"paused,omitzero"`
	// PausedUntil is when the pause ends by itself; zero: it does not.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// PausedBy is the agent whose session paused it; "": a person did.
	PausedBy string `json:"paused_by,omitempty"`
	// Approval is what the agent waits for a person to say yes or no to; nil: nothing.
	Approval *Approval `json:"approval,omitempty"`
	// Aside counts the entries that wait for that while the queue goes on; Depth.Aside has
	// them for who reads the published state.
	Aside int `json:"-"`
	// AwaitsAside is the first request that waits while the agent works on; nil: none.
	AwaitsAside *Approval `json:"-"`
	// Proof is how far the check of the entry in flight is; nil: nothing is checked.
	Proof   *Proof     `json:"proof,omitempty"`
	Session string     `json:"session,omitempty"`
	Phase   hook.Phase `json:"phase,omitempty"`
	Work    *hook.Work `json:"work,omitempty"`
	// Attached counts the people in the session who may type. Hush is until when
	// the session gets no prompt because one of them has typed.
	Attached int       `json:"attached,omitempty"`
	Hush     time.Time `json:"hush,omitzero"`
	// Cancelling is true while what the agent works on is to be cancelled, and is not yet.
	Cancelling bool `json:"cancelling,omitempty"`
	// Tool runs in the session's turn; nil: none. Silent is since when a turn in which
	// none runs shows no sign of life.
	Tool   *session.Tool `json:"tool,omitempty"`
	Silent time.Time     `json:"silent,omitzero"`
	// Said is what the session has said of itself (heartbeat alive); nil: nothing.
	Said *Said            `json:"said,omitempty"`
	Last *session.Outcome `json:"last,omitempty"`
	// Acknowledged and DeadLettered count entries of the current run.
	Acknowledged int `json:"acknowledged"`
	DeadLettered int `json:"dead_lettered"`
	// Spent is what sessions of the current run have cost.
	Spent usage.Sum `json:"spent,omitzero"`
	// Lost is why nothing can be started in the agent's directory, or "".
	Lost string `json:"lost,omitempty"`
	// QueueLost is set when prompts were lost with the queue's folder, until a
	// person resumes the agent.
	QueueLost *QueueLoss `json:"queue_lost,omitempty"`
	// Stuck is set while the service keeps failing the agent's work.
	Stuck *Stuck `json:"stuck,omitempty"`
	// Client is set while the agent's client is one that does not do what heartbeat relies
	// on.
	Client *Drift `json:"client,omitempty"`
	// Denied are the calls of tools in the agent's last session that no rule allows.
	Denied []session.Denied `json:"denied,omitempty"`
	// Servers are those of MCP that did not connect in the agent's last session.
	Servers []session.Server `json:"servers,omitempty"`
	// PausedTriggers do not fire by themselves; the agent works.
	PausedTriggers []memory.PausedTrigger `json:"paused_triggers,omitempty"`
	// Strays are the prompts in its last session that neither its queue nor a person has
	// given.
	Strays []session.Stray `json:"strays,omitempty"`
	// Failing are the triggers that fail.
	Failing []firing.Failing `json:"failing,omitempty"`
	// Unsent is set while prompts whose time has come (send --at) cannot be queued.
	Unsent *Unable `json:"unsent,omitempty"`
	// Untended is set while the agent's approvals are stuck: answers
	// have no effect.
	Untended *Unable `json:"untended,omitempty"`
	// RefusedFires are those that triggers had no room for, in this run.
	RefusedFires []firing.RefusedFires `json:"refused,omitempty"`
	// RefusedRequests are those that webhooks have refused.
	RefusedRequests []firing.RefusedRequests `json:"refused_requests,omitempty"`
}

// Unable says since when something cannot be done that is tried again, and why.
type Unable struct {
	Since time.Time    `json:"since"`
	Why   foreign.Text `json:"why"`
}

// Drift is what an agent's client does otherwise than heartbeat relies on, and what to
// do.
type Drift struct {
	Client foreign.Text `json:"client"`
	Breaks foreign.Text `json:"breaks"`
	Fix    foreign.Text `json:"fix"`
}

// Said is what a session has said of itself, in its own words.
type Said struct {
	At   time.Time    `json:"at"`
	Text foreign.Text `json:"text"`
}

// QueueLoss says that a queue's folder disappeared with accepted prompts in it. It
// is shown until a person resumes the agent.
type QueueLoss struct {
	At time.Time `json:"at"`
	session.Loss
}

// Stuck says that the service keeps failing the entry at the head of a queue. It
// ends by itself and nobody can speed it up, but a person wants to know if it
// takes long.
type Stuck struct {
	Since time.Time `json:"since"` // the first failure
	Why   string    `json:"why"`   // the last one
	// Told is true once it has lasted for stuck-after, and a person is told.
	Told bool `json:"told"`
}

// Blocked is what keeps an agent's sessions from working, and what to change.
type Blocked struct {
	Why string `json:"why"`
	Fix string `json:"fix"`
}

// Line is what an agent said or did, in its client's record. The agent can forge it.
type Line struct {
	At time.Time `json:"at"`
	// Tool is the tool that it called with Text; "": it said Text.
	Tool foreign.Text `json:"tool,omitempty"`
	Text foreign.Text `json:"text"`
}

// Agent is everything that is known about an agent, with or without a scheduler.
type Agent struct {
	AgentState
	// Depth is what is queued. Problem says what is wrong with the agent's queue,
	// directory or published state, or "".
	Depth    inbox.Depth     `json:"depth"`
	InFlight *inbox.InFlight `json:"in_flight,omitempty"`
	Dead     int             `json:"dead_letters"`
	// TakenOut are the prompts that somebody took out of the agent's inbox, as long as a
	// person has not dealt with their dead letters.
	TakenOut *TakenOut `json:"taken_out,omitempty"`
	// DeadMore is true when there are more dead letters than were counted. DeadSince is
	// when the oldest one was given up, apart from those of TakenOut.
	DeadMore  bool      `json:"dead_letters_more,omitempty"`
	DeadSince time.Time `json:"dead_letters_since,omitzero"`
	Problem   string    `json:"problem,omitempty"`
	absent    bool      // Problem is that the directory is not there
	// Asks is true when the queue does not know where to continue, and asks a person.
	Asks bool `json:"needs_answer,omitempty"`
	// Was is the last state of an agent that is now stopped.
	Was State `json:"was,omitempty"`
	// Budget is one that is used up for an agent that no scheduler runs; nil: none is.
	Budget *Budget `json:"budget,omitempty"`
	// Today is what the agent's sessions have cost since midnight in its time zone.
	Today usage.Sum `json:"today,omitzero"`
	// MaxQueue is how many prompts may be queued; 0: as many as come.
	MaxQueue int `json:"max_queue,omitempty"`
	// Line is what the agent said or did last in its live session; nil: nothing yet.
	Line *Line `json:"line,omitempty"`
	// Unread is true when the queue could not be read: then Depth and InFlight say
	// nothing. DeadUnread is the same for the dead letters.
	Unread     bool `json:"unread,omitempty"`
	DeadUnread bool `json:"dead_unread,omitempty"`
	// Blocked is what keeps sessions of a stopped agent from working, for certain.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Next is the next scheduled fire, or zero; Watches, Polls and Webhooks count the
	// triggers that have none.
	Next     time.Time `json:"next,omitzero"`
	Watches  int       `json:"watches,omitempty"`
	Polls    int       `json:"polls,omitempty"`
	Webhooks int       `json:"webhooks,omitempty"`
}

// Unscheduled is what may queue a prompt at any time, in a word or two, where no fire is
// scheduled; "" if nothing does, or if one is.
func (a Agent) Unscheduled() string {
	switch {
	case !a.Next.IsZero():
		return ""
	case min(a.Watches, 1)+min(a.Polls, 1)+min(a.Webhooks, 1) > 1:
		return "any time"
	case a.Watches > 0:
		return "files"
	case a.Polls > 0:
		return "poll"
	case a.Webhooks > 0:
		return "webhook"
	}
	return ""
}
