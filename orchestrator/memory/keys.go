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
func Unproven(stateDir string, agents []*config.Agent, anew bool) func(a *config.Agent, d inbox.Delivery) (bool, error) {
	var mu sync.Mutex
	keys := map[string]string{} // by name
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
	return func(a *config.Agent, d inbox.Delivery) (bool, error) {
		key, err := keyOf(a.Name)
		if err != nil {
			return false, err
		}
		return ledger.Unproven(stateDir, key, a.Inbox, d, anew)
	}
}

// Doubtful is Unproven for who shows a record or believes it: what cannot be told counts
// as unproven.
func Doubtful(stateDir string, agents []*config.Agent, anew bool) func(a *config.Agent, d inbox.Delivery) bool {
	unproven := Unproven(stateDir, agents, anew)
	return func(a *config.Agent, d inbox.Delivery) bool {
		is, err := unproven(a, d)
		return is || err != nil
	}
}
