package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Summary is the result of a run.
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
	SomeLeft   Verdict = "left" // dead-lettered, held, still queued, or not fired
)

func (v Verdict) rank() int { return slices.Index([]Verdict{AllDone, SomeParked, SomeLeft}, v) }

// Verdict returns the result of a run with Once: the worst of its agents' verdicts,
// or SomeLeft if the run did not finish.
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

// Verdict returns one agent's result in a run with Once.
func (a AgentSummary) Verdict() Verdict {
	switch {
	case a.State == Held || a.Lost != "" || a.Unread != "" || a.DeadLettered > 0 || len(a.Failing) > 0 || a.Queued > 0 && a.State != Parked:
		return SomeLeft
	case a.State == Parked:
		return SomeParked
	}
	return AllDone
}

// Why says why an agent is in its state, or why it is not done; "" if it is idle
// and done.
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
