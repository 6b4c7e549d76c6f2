// Package exportstest gives tests a store with the tables of packages entries and exports.
package exportstest

import (
	"testing"

	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/exports"
	"heartbeat/orchestrator/store"
)

// New opens a store in a state directory until the test ends.
func New(t testing.TB, stateDir string) *store.Store {
	t.Helper()
	s := entriestest.New(t, stateDir)
	Make(t, s)
	return s
}

// Make makes the tables in a store that lacks them.
func Make(t testing.TB, s *store.Store) {
	t.Helper()
	entriestest.Make(t, s)
	entriestest.Apply(t, s, "exports", exports.Schema)
}
