package adopt

import (
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/store"
)

// accounts are what was known of them.
func accounts(c *store.Change, data []byte) error {
	var kept map[account.ID]struct {
		Until, Since time.Time
		Source       account.Source
		Reason       string
		Limits       client.Limits
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	all := map[account.ID]account.Kept{}
	for id, k := range kept {
		all[id] = account.Kept{Until: k.Until, Since: k.Since, Source: k.Source, Reason: k.Reason, Limits: k.Limits}
	}
	return account.Keep(c, all)
}
