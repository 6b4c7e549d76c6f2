// Package status is what is known of a fleet, for those who read it: `status`,
// `send`, doctor, metrics, the end of a run. A scheduler says what its agents
// do (AgentState) and publishes it in the state directory; the disk says what
// their queues and sessions hold, with or without a scheduler (disk.go); the
// rest of the room merges the two, and says of the result what a person wants
// to know. It decides nothing about agents.
package status

import (
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/session"
)

// State is what an agent is doing.
type State string

// The states. An agent is in one at a time.
const (
	Idle       State = "idle"        // nothing to do
	Waiting    State = "waiting"     // work is queued, no session slot is free
	Starting   State = "starting"    // applying, recovering, launching
	Running    State = "running"     // a session lives
	Ending     State = "ending"      // its session is being ended
	BackingOff State = "backing-off" // until a time, after a failure
	Parked     State = "parked"      // usage limit or authentication of the account: until a time
	Held       State = "held"        // too many restarts, or paused: needs a person
	// Stopped is what readers are told of an agent that no scheduler runs.
	Stopped State = "stopped"
)

// States are all states that an agent of a running fleet can be in.
func States() []State {
	return []State{Idle, Waiting, Starting, Running, Ending, BackingOff, Parked, Held}
}

// AgentState is what its scheduler says of an agent.
type AgentState struct {
	Agent  string       `json:"agent"`
	State  State        `json:"state"`
	Since  time.Time    `json:"since"`
	Until  time.Time    `json:"until,omitzero"`
	Reason foreign.Text `json:"reason,omitempty"`
	// Fix is what to change before sessions can work, of an agent that is held for
	// it and goes on by itself then.
	Fix foreign.Text `json:"fix,omitempty"`
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

// QueueLoss is a queue whose folder went with what was in it. It is shown until
// a person resumes the agent: accepted prompts are gone.
type QueueLoss struct {
	At time.Time `json:"at"`
	session.Loss
}

// Stuck is work at the head of a queue that the service refuses again and
// again. It passes, and nobody can do anything about it; but somebody wants to
// know when it takes long.
type Stuck struct {
	Since time.Time `json:"since"` // the first failure
	Why   string    `json:"why"`   // the last one
	// Told is true from stuck-after on.
	Told bool `json:"told"`
}

// NeedsPerson reports whether nothing starts until a person resumes the agent,
// who has not paused it themselves, or brings its directory back; or whether
// accepted prompts are gone, or work does not move, which somebody has to know.
func (a AgentState) NeedsPerson() bool {
	return a.Lost != "" || a.QueueLost != nil || a.Stuck != nil && a.Stuck.Told || a.State == Held && a.Paused.IsZero()
}

// WhoPaused says who paused the agent: a person, or an agent's session.
func (a AgentState) WhoPaused() string { return WhoPaused(a.PausedBy) }

// WhoPaused says who paused an agent: the session of an agent or, where that is
// "", a person.
func WhoPaused(agent string) string {
	if agent == "" {
		return "a person"
	}
	return fmt.Sprintf("a session of agent %q", agent)
}

// Run says which scheduler runs a fleet.
type Run struct {
	PID     int       `json:"pid"`
	Fleet   string    `json:"fleet"`
	File    string    `json:"file"`
	Started time.Time `json:"started"`
}

// Live is what a running scheduler answers who asks what it does now.
type Live struct {
	Run
	Agents []AgentState `json:"agents"`
}

// Fleet is what is known of a fleet.
type Fleet struct {
	Fleet string `json:"fleet"`
	// Scheduler is the run that has answered, or null.
	Scheduler *Run    `json:"scheduler"`
	Agents    []Agent `json:"agents"`
}

// Agent is what is known of an agent, with or without a scheduler.
type Agent struct {
	AgentState
	// Depth is what is queued; Problem says why it is not known.
	Depth    inbox.Depth     `json:"depth"`
	InFlight *inbox.InFlight `json:"in_flight,omitempty"`
	Dead     int             `json:"dead_letters"`
	// DeadMore is true when there are more of them than were counted.
	DeadMore bool   `json:"dead_letters_more,omitempty"`
	Problem  string `json:"problem,omitempty"`
	// Asks is true when the queue does not know where to go on, and asks a person.
	Asks bool `json:"needs_answer,omitempty"`
	// Was is the state in which its last scheduler has left an agent that is
	// stopped.
	Was State `json:"was,omitempty"`
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
