package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/store"
)

// Hold is why no session of an agent is started, by this run and the next ones,
// until a person resumes it or its definition changes.
type Hold struct {
	Since time.Time
	Held
	// Definition is that of the agent when it failed; see DefinitionOf.
	Definition string
}

// Held is why an agent is held; the zero value: it is not.
type Held struct {
	Why string
	// Fix is what to change first, where that is known.
	Fix string
	// Answers, if not "", were in place when a session's client asked a person at its start.
	// Then the hold also ends when they have changed, or at the next try.
	Answers string
}

// DefinitionOf returns a hash that changes with an agent's definition. It also changes if a new
// version of this program knows more keys.
func DefinitionOf(a *config.Agent) string {
	b := a.Placeless()
	data, err := json.Marshal(b)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	return hashOf(string(data), hashOfAll(a.Triggers))
}

// KeepHold keeps why the agent with a key is held. Without a Why it is not held.
func KeepHold(c *store.Change, key string, h Hold) error {
	if _, err := c.Do(`DELETE FROM holds WHERE agent = $1`, key); err != nil || h.Why == "" {
		return err
	}
	_, err := c.Do(`INSERT INTO holds (agent, since, why, fix, answers, definition) VALUES ($1, $2, $3, $4, $5, $6)`,
		key, store.Millis(h.Since), h.Why, h.Fix, h.Answers, h.Definition)
	return err
}

// ReadHolds returns, by key, the agents that were held when their last run ended.
func ReadHolds(v *store.View) (map[string]Hold, error) {
	holds := map[string]Hold{}
	err := v.Each(`SELECT agent, since, why, fix, answers, definition FROM holds`, nil, func(scan store.Scan) error {
		var key string
		var h Hold
		var since int64
		err := scan(&key, &since, &h.Why, &h.Fix, &h.Answers, &h.Definition)
		h.Since = store.Time(since)
		holds[key] = h
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot tell which agents were held: %w", err)
	}
	return holds, nil
}

// Resume ends the pause of the agent with a key, and its hold.
func Resume(c *store.Change, key string) error {
	return cmp.Or(KeepPause(c, key, Paused{}), KeepHold(c, key, Hold{}))
}
