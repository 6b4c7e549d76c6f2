package memory

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/store"
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

// Pause pauses the trigger; see Paused.Again. The caller saves it, as after Resume.
func (t *Trigger) Pause(asked Paused) {
	t.note(func() { t.t.Paused = t.t.Paused.at(asked.Since).Again(asked) })
}

// Resume ends the trigger's pause, unless that is over. A schedule counts from the end: what
// fell due before is not made up for.
func (t *Trigger) Resume(now time.Time) {
	t.note(func() {
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

// Try changes the trigger, and returns what puts its pause, and since when its schedule counts,
// back to what they were, unless they have changed again.
func (t *Trigger) Try(change func(*Trigger)) (undo func()) {
	type state struct {
		paused Paused
		fired  time.Time
	}
	now := func() (s state) {
		t.note(func() { s = state{t.t.Paused, t.t.Fired} })
		return s
	}
	before := now()
	change(t)
	after := now()
	return func() {
		t.note(func() {
			if (state{t.t.Paused, t.t.Fired}) == after {
				t.t.Paused, t.t.Fired = before.paused, before.fired
			}
		})
	}
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
	paused, err := store.Ask(context.Background(), stateDir, func(v *store.View) (map[string][]PausedTrigger, error) {
		some, err := v.One(`SELECT agent FROM pauses WHERE trigger <> '' LIMIT 1`, nil, new(string))
		if err != nil || !some {
			return nil, err
		}
		known, err := Read(v)
		if err != nil {
			return nil, err
		}
		memories, err := read(v, "", true)
		if err != nil {
			return nil, err
		}
		now, paused := time.Now(), map[string][]PausedTrigger{}
		who := known.Follow(agents, now).Declared()
		for _, a := range agents {
			m := memories[who[a.Name].Key]
			if m == nil {
				continue
			}
			all, _, _ := m.Follow(a, false, now)
			if of := PausedTriggers(a, all, now); of != nil {
				paused[a.Name] = of
			}
		}
		return paused, nil
	})
	if err != nil {
		return nil
	}
	return paused
}

// ChangeTrigger changes what a trigger of the agent with a key remembers, by its position,
// where no run has that agent.
func ChangeTrigger(c *store.Change, key string, a *config.Agent, i int, change func(*Trigger)) error {
	all, err := read(&c.View, key, false)
	if err != nil {
		return err
	}
	triggers, _, _ := all[key].Follow(a, false, time.Now())
	change(triggers[i])
	return all[key].write(c)
}
