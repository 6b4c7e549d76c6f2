package adopt

import (
	"time"

	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
)

// stopHooks are those that have continued a client.
func stopHooks(c *store.Change, data []byte) error {
	var kept struct {
		Hooks map[string]struct {
			Command string
			Agents  []string
			Since   time.Time
		}
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	for _, h := range kept.Hooks {
		for _, agent := range h.Agents {
			if err := stophooks.Keep(c, h.Command, agent, h.Since); err != nil {
				return err
			}
		}
	}
	return nil
}
