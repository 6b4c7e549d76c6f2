package ledger

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Doubts returns a function that reports whether a record in an agent's outbox is Unproven.
// keyOf returns agents' keys (memory.Keys); fresh is as for Unproven. The function may be
// called by several goroutines if keyOf may.
func Doubts(stateDir string, keyOf func(*config.Agent) (string, error), fresh bool) func(a *config.Agent, d inbox.Delivery) (bool, error) {
	return func(a *config.Agent, d inbox.Delivery) (bool, error) {
		key, err := keyOf(a)
		if err != nil {
			return false, err
		}
		return Unproven(stateDir, key, a.Inbox, d, fresh)
	}
}

// Doubtful is Doubts for callers that show or believe records: if it cannot be told, the
// record counts as unproven.
func Doubtful(stateDir string, keyOf func(*config.Agent) (string, error), fresh bool) func(a *config.Agent, d inbox.Delivery) bool {
	doubts := Doubts(stateDir, keyOf, fresh)
	return func(a *config.Agent, d inbox.Delivery) bool {
		is, err := doubts(a, d)
		return is || err != nil
	}
}
