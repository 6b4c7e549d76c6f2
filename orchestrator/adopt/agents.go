package adopt

import (
	"maps"
	"slices"
	"time"

	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
	"heartbeat/sources"
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

// triggers are what the triggers of an agent remember, by its key. Until 2026-11 they were
// known by their names.
func triggers(c *store.Change, key string, data []byte) error {
	var kept struct {
		Triggers []*memory.Memo
		Used     map[string]int
		Fired    map[string]time.Time
		Seen     map[string]sources.Seen
		Kept     map[string][]string
		Polled   map[string]time.Time
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	if kept.Used == nil {
		kept.Used = map[string]int{}
	}
	all := slices.DeleteFunc(kept.Triggers, func(t *memory.Memo) bool { return t == nil })
	named := func(name string, kind memory.Kind) *memory.Memo {
		for _, t := range all {
			if t.Name == name && t.Kind == kind {
				return t
			}
		}
		t := &memory.Memo{Definition: memory.Definition{Kind: kind, Name: name}, Key: memory.NewKey(kept.Used, name)}
		all = append(all, t)
		return t
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Fired)) {
		named(name, memory.Cron).Fired = kept.Fired[name]
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Seen)) {
		named(name, memory.Watch).Seen = kept.Seen[name]
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Kept)) {
		named(name, memory.Poll).Kept = kept.Kept[name]
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Polled)) {
		named(name, memory.Poll).Polled = kept.Polled[name]
	}
	return memory.Adopt(c, key, all, kept.Used)
}

// conversation is the one that an agent's last sessions had, by its key.
func conversation(c *store.Change, key string, data []byte) error {
	var kept struct {
		ID, Dir  string
		Sessions []string
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	sessions := append([]string{"", ""}, kept.Sessions...) // of two the last one comes last
	_, err := c.Do(`INSERT INTO conversations (agent, id, dir, session, before) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (agent) DO NOTHING`,
		key, kept.ID, kept.Dir, sessions[len(sessions)-1], sessions[len(sessions)-2])
	return err
}
