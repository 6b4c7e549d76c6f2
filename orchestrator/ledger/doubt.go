package ledger

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Doubts returns what reports whether a record in an agent's outbox is Unproven. keyOf
// knows the agents' keys (memory.Keys); anew is as for Unproven. It may be called by
// several goroutines if keyOf may.
func Doubts(stateDir string, keyOf func(*config.Agent) (string, error), anew bool) func(a *config.Agent, d inbox.Delivery) (bool, error) {
	return func(a *config.Agent, d inbox.Delivery) (bool, error) {
		key, err := keyOf(a)
		if err != nil {
			return false, err
		}
		return Unproven(stateDir, key, a.Inbox, d, anew)
	}
}

// Doubtful is Doubts for who shows a record or believes it: what cannot be told counts as
// unproven.
func Doubtful(stateDir string, keyOf func(*config.Agent) (string, error), anew bool) func(a *config.Agent, d inbox.Delivery) bool {
	doubts := Doubts(stateDir, keyOf, anew)
	return func(a *config.Agent, d inbox.Delivery) bool {
		is, err := doubts(a, d)
		return is || err != nil
	}
}
