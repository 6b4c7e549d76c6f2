package adopt

import (
	"time"

	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
)

// identities are those of the agents.
func identities(c *store.Change, data []byte) error {
	var kept struct {
		Agents []struct {
			Name, Dir, Key, Triggers string
			Gone                     time.Time
		}
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	for _, i := range kept.Agents {
		if err := memory.Keep(c, memory.Identity{Name: i.Name, Dir: i.Dir, Key: i.Key, Triggers: i.Triggers, Gone: i.Gone}); err != nil {
			return err
		}
	}
	return nil
}

// pauses are those of agents.
func pauses(c *store.Change, data []byte) error {
	var kept struct {
		Since, Until map[string]time.Time
		By           map[string]string
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	for key, since := range kept.Since {
		if err := memory.KeepPause(c, key, memory.Paused{Since: since, Until: kept.Until[key], By: kept.By[key]}); err != nil {
			return err
		}
	}
	return nil
}

// hold is why an agent is held, by its key.
func hold(c *store.Change, key string, data []byte) error {
	var h struct {
		Since                         time.Time
		Why, Fix, Answers, Definition string
	}
	if err := read(data, &h); err != nil {
		return err
	}
	return memory.KeepHold(c, key, memory.Hold{Since: h.Since, Held: memory.Held{Why: h.Why, Fix: h.Fix, Answers: h.Answers}, Definition: h.Definition})
}
