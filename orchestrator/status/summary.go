package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Summary is the result of a run.
type Summary struct {
	// Finished is true when a run with Once had nothing left to do.
	Finished bool `json:"finished"`
	// Unfired counts triggers that --fire could not fire.
	Unfired int `json:"unfired,omitempty"`
	// Undelivered says which replies have not arrived where they were to go, or is "".
	Undelivered string         `json:"undelivered,omitempty"`
	Agents      []AgentSummary `json:"agents"`
}

// AgentSummary is what a run did for one agent.
type AgentSummary struct {
	AgentState
	Queued int `json:"queued"`
	// Unread is why it is not known what is queued, or "".
	Unread string `json:"unread,omitempty"`
	// Waiting counts the entries that are set aside until a person has said yes or no.
	Waiting int `json:"waiting,omitempty"`
	// Vanished says that queued prompts were taken out of the inbox during the run, or is "".
	Vanished string `json:"vanished,omitempty"`
}

// Totals are how many prompts the agents of a run have done and given up, and how many
// are queued.
func (s *Summary) Totals() (done, dead, queued int) {
	for _, a := range s.Agents {
		done, dead, queued = done+a.Acknowledged, dead+a.DeadLettered, queued+a.Queued
	}
	return done, dead, queued
}

// statesText says how many agents are in each state.
func statesText(counts map[State]int) string {
	var states []string
	for _, s := range append(States(), Stopped, State(IsPaused)) {
		if n := counts[s]; n > 0 {
			states = append(states, strconv.Itoa(n)+" "+string(s))
		}
	}
	return strings.Join(states, ", ")
}

// Verdict is the overall result of a run with Once.
type Verdict string

// The verdicts, from best to worst. The worst verdict of an agent is the run's.
const (
	AllDone    Verdict = "done"
	SomeParked Verdict = "parked"
	SomeLeft   Verdict = "left" // dead-lettered, lost, held, still queued, waiting for a person, not fired, or a reply that has not arrived
)

func (v Verdict) rank() int { return slices.Index([]Verdict{AllDone, SomeParked, SomeLeft}, v) }

// Verdict returns the result of a run with Once: the worst of its agents' verdicts,
// or SomeLeft if the run did not finish.
func (s *Summary) Verdict() Verdict {
	v := AllDone
	if !s.Finished || s.Unfired > 0 || s.Undelivered != "" {
		v = SomeLeft
	}
	for _, a := range s.Agents {
		if of := a.Verdict(); of.rank() > v.rank() {
			v = of
		}
	}
	return v
}

// Verdict returns one agent's result in a run with Once: whether something that it was to do is
// not done. What was given up before the run is no part of it.
func (a AgentSummary) Verdict() Verdict {
	switch {
	case a.State == Held || a.Queued > 0 && a.State != Parked || a.notDone() != "":
		return SomeLeft
	case a.State == Parked:
		return SomeParked
	}
	return AllDone
}

// notDone says what is not done of what the queue does not show, or is "".
func (a AgentSummary) notDone() string {
	switch {
	case a.QueueLost != nil:
		return "its queue was lost: " + a.QueueLost.String()
	case a.Lost != "" || a.Unread != "":
		return cmp.Or(a.Lost, a.Unread)
	case a.Unsent != nil:
		return "prompts whose time has come cannot be queued: " + a.Unsent.Why.String()
	case a.Untended != nil:
		return "approvals are stuck: " + a.Untended.Why.String()
	case len(a.Failing) > 0:
		return "trigger " + a.Failing[0].Trigger + ": " + a.Failing[0].Why.String()
	case a.Waiting == 1:
		return "1 prompt waits for approval"
	case a.Waiting > 0:
		return strconv.Itoa(a.Waiting) + " prompts wait for approval"
	case a.DeadLettered > 0:
		return fmt.Sprintf("%d given up", a.DeadLettered)
	}
	return a.Vanished
}

// Why says why an agent is in its state, or why it is not done; "" if it is idle
// and done.
func (a AgentSummary) Why() string {
	switch {
	case a.State != Idle:
		return a.Reason.String()
	case a.notDone() != "":
		return a.notDone()
	case a.Queued > 0:
		return fmt.Sprintf("%d still queued", a.Queued)
	}
	return ""
}

// Vanish takes in which agents lost prompts during a run that began at a time, as the troubles
// at its end say.
func (s *Summary) Vanish(troubles []Trouble, begin time.Time) {
	for _, t := range troubles {
		for i := range s.Agents {
			if s.Agents[i].Agent == t.Agent && t.What == LostPrompts && !t.Since.Before(begin) {
				s.Agents[i].Vanished = t.Text
			}
		}
	}
}
