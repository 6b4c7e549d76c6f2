package status

import (
	"fmt"
	"time"

	"heartbeat/config"
)

// Headway is how far a run is with what is queued. The queues are counted every
// BacklogFor; in between, what was handed over and done since is known.
type Headway struct {
	// Done is how many prompts were finished, done or given up. Of is how many there
	// were, those that are left included.
	Done, Of int
	// Text says it for people, with what the agents do.
	Text string

	queues  Backlogs
	counted time.Time
}

// Look brings it up to date: says is what the scheduler says of the agents now.
func (h *Headway) Look(agents []*config.Agent, says []AgentState) {
	counts, empty, works := map[State]int{}, map[string]bool{}, 0
	h.Done = 0
	for _, a := range says {
		h.Done += a.Acknowledged + a.DeadLettered
		counts[a.Shown()]++
		empty[a.Agent] = a.Empty()
		if a.Work != nil {
			works++
		}
	}
	if now := time.Now(); h.counted.IsZero() || now.Sub(h.counted) >= BacklogFor {
		h.counted, h.Of = now, h.Done+works
		for _, b := range h.queues.Look(func() []Queue { return queuesOf(agents, empty) }) {
			h.Of += b.Queued
		}
	}
	h.Of = max(h.Of, h.Done+works)
	h.Text = fmt.Sprintf("%d of %s", h.Done, plural(h.Of, "prompt"))
	if text := statesText(counts); text != "" {
		h.Text += "; " + text
	}
	h.Text += checkless(says, time.Now())
}

// checkless says whose check cannot be run, and why: the run does not end before that.
func checkless(says []AgentState, now time.Time) string {
	text, more := "", 0
	for _, a := range says {
		switch {
		case a.Proof == nil || !a.Proof.Vain.NeedsPerson(now):
		case text == "":
			text = "; waits for " + a.Agent + ", whose check gives no answer: " + a.Proof.Vain.Why.String()
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" (and for %d more)", more)
	}
	return text
}

func queuesOf(agents []*config.Agent, empty map[string]bool) (all []Queue) {
	for _, a := range agents {
		all = append(all, Queue{Agent: a, Idle: empty[a.Name]})
	}
	return all
}
