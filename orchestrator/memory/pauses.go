package memory

import (
	"context"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// Pauses are the pauses of agents, by their keys, as they are kept.
type Pauses map[string]Paused

// Of returns the present pause of the agent with a key; the zero value: it is not paused.
func (p Pauses) Of(key string, now time.Time) Paused { return p[key].at(now) }

// ReadPauses returns which agents are paused.
func ReadPauses(v *store.View) (Pauses, error) { return pauses(v, `trigger = ''`) }

// pauses returns the pauses of agents for which a condition holds.
func pauses(v *store.View, where string, args ...any) (Pauses, error) {
	all := Pauses{}
	err := v.Each(`SELECT agent, since, until, by_agent FROM pauses WHERE `+where, args, func(scan store.Scan) error {
		var key string
		var p Paused
		var since, until int64
		err := scan(&key, &since, &until, &p.By)
		p.Since, p.Until = store.Time(since), store.Time(until)
		all[key] = p
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot tell which agents are paused: %w", err)
	}
	return all, nil
}

// Pause pauses the agent with a key; see Paused.Again.
func Pause(c *store.Change, key string, asked Paused) error {
	kept, err := pauses(&c.View, `agent = $1 AND trigger = ''`, key)
	if err != nil {
		return err
	}
	return KeepPause(c, key, kept.Of(key, asked.Since).Again(asked))
}

// KeepPause keeps the pause of an agent, by its key; the zero value: it is not paused.
func KeepPause(c *store.Change, key string, p Paused) error {
	if _, err := c.Do(`DELETE FROM pauses WHERE agent = $1 AND trigger = ''`, key); err != nil || p.Since.IsZero() {
		return err
	}
	_, err := c.Do(`INSERT INTO pauses (agent, trigger, since, until, by_agent) VALUES ($1, '', $2, $3, $4)`, key, store.Millis(p.Since), store.Millis(p.Until), p.By)
	return err
}

// Paused is a pause of an agent or a trigger; the zero value: there is none.
type Paused struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // when it ends by itself; zero: it does not
	By    string    `json:"by,omitempty"`   // the agent whose session asked for it; "": a person did
}

// Over reports whether a pause has ended by itself.
func (p Paused) Over(now time.Time) bool { return !p.Until.IsZero() && deadline.Over(p.Until, now) }

// Again returns the pause that results when another one is requested: the new one, except that the
// first of two pauses without an end stays, and a session shortens no pause of others.
func (p Paused) Again(asked Paused) Paused {
	switch {
	case p.Since.IsZero() || p.Over(asked.Since):
		return asked
	case p.Until.IsZero() && (asked.Until.IsZero() || asked.By != ""),
		asked.By != "" && !asked.Until.IsZero() && asked.Until.Before(p.Until):
		return p
	}
	return asked
}

// at returns what is left of a pause that was read from the store. If the clock was set back, the pause
// lasts no longer from now on than it was to last in all.
func (p Paused) at(now time.Time) Paused {
	if p.Since.IsZero() || p.Until.IsZero() {
		return p
	}
	if p.Until = deadline.On(p.Until, now, p.Until.Sub(p.Since)); p.Over(now) {
		return Paused{}
	}
	return p
}

// PausedOf returns which of the agents are paused, by name, whether or not a run has them now;
// nil: the fleet has no store yet, so that nothing is known.
func PausedOf(stateDir string, agents []*config.Agent) (map[string]Paused, error) {
	return store.Ask(context.Background(), stateDir, func(v *store.View) (map[string]Paused, error) {
		kept, err := ReadPauses(v)
		if err != nil {
			return nil, err
		}
		paused := map[string]Paused{}
		if len(kept) == 0 {
			return paused, nil
		}
		known, err := Read(v)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		for name, who := range known.Follow(agents, now).Declared() {
			if p := kept.Of(who.Key, now); !p.Since.IsZero() {
				paused[name] = p
			}
		}
		return paused, nil
	})
}
