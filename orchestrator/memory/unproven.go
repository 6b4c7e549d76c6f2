package memory

import (
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
)

// Unproven returns what reports, of a fleet's agents, whether an outbox record is of an
// entry that has to be proven, and is not that of its verdict. anew says that only prompts
// are asked about that were queued for the first time; see ledger.Unproven. It may be
// called by several goroutines.
func Unproven(stateDir string, agents []*config.Agent, anew bool) func(a *config.Agent, d inbox.Delivery) bool {
	var mu sync.Mutex
	keys := map[string]string{} // :: name
	keyOf := func(name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if keys[name] != "" {
			return keys[name], nil
		}
		known, err := Read(stateDir)
		if err != nil || len(known) == 0 { // no run has begun
			return "", err
		}
		for name, id := range known.Follow(agents, time.Now()).Declared() {
			keys[name] = id.Key
		}
		return keys[name], nil
	}
	return func(a *config.Agent, d inbox.Delivery) bool {
		key, err := keyOf(a.Name)
		return err != nil || ledger.Unproven(stateDir, key, a.Inbox, d, anew)
	}
}
