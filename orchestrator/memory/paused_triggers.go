package memory

import (
	"time"

	"heartbeat/config"
)

// PausedTrigger is a trigger that does not fire by itself, until somebody resumes it or its
// pause is over. Its agent works on.
type PausedTrigger struct {
	Trigger string `json:"trigger"`
	Paused
}

// Paused returns the trigger's present pause; the zero value: it has none.
func (t *Trigger) Paused(now time.Time) Paused {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.t.Paused.at(now)
}

// HasPause reports whether a pause is remembered, which may be over.
func (t *Trigger) HasPause() bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return !t.t.Paused.Since.IsZero()
}

// Pause saves the trigger's pause; see Paused.Again.
func (t *Trigger) Pause(asked Paused) error {
	return t.m.change(func() { t.t.Paused = t.t.Paused.at(asked.Since).Again(asked) })
}

// Resume ends the trigger's pause, unless that is over, and saves it. A schedule counts from
// the end: what fell due before is not made up for.
func (t *Trigger) Resume(now time.Time) error {
	return t.m.change(func() {
		end := now
		if p := t.t.Paused; p.Over(now) {
			end = p.Until
		}
		if !t.t.Paused.Since.IsZero() && t.t.Fired.Before(end) {
			t.t.Fired = end
		}
		t.t.Paused = Paused{}
	})
}

// PausedTriggers returns which of an agent's triggers are paused, whose memories are all.
func PausedTriggers(a *config.Agent, all []*Trigger, now time.Time) (paused []PausedTrigger) {
	for i, t := range all {
		if p := t.Paused(now); !p.Since.IsZero() {
			paused = append(paused, PausedTrigger{a.Triggers[i].Name, p})
		}
	}
	return paused
}

// PausedTriggersOf returns which triggers of agents are paused, by the agents' names, for
// those who have no run to ask. What cannot be read counts as not paused.
func PausedTriggersOf(stateDir string, agents []*config.Agent) map[string][]PausedTrigger {
	known, err := ReadIn(stateDir)
	if err != nil {
		return nil
	}
	now, paused := time.Now(), map[string][]PausedTrigger{}
	who := known.Follow(agents, now).Declared()
	for _, a := range agents {
		if m, err := Open(stateDir, who[a.Name].Key); err == nil && len(m.data.Triggers) > 0 {
			all, _, _ := m.Follow(a, false, now)
			if of := PausedTriggers(a, all, now); of != nil {
				paused[a.Name] = of
			}
		}
	}
	return paused
}

// ChangeTrigger changes what a trigger of the agent with a key remembers, by its position.
func ChangeTrigger(stateDir, key string, a *config.Agent, i int, change func(*Trigger) error) error {
	m, err := Open(stateDir, key)
	if err != nil {
		return err
	}
	all, _, _ := m.Follow(a, false, time.Now())
	return change(all[i])
}
