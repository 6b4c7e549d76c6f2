// Package entriestest gives tests a store with the tables of packages entries and check, which are
// of the same entries.
package entriestest

import (
	"strings"
	"testing"

	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// New opens a store in a state directory until the test ends.
func New(t testing.TB, stateDir string) *store.Store {
	t.Helper()
	s := storetest.New(t, stateDir)
	Make(t, s)
	return s
}

// Make makes the tables in a store that lacks them.
func Make(t testing.TB, s *store.Store) {
	t.Helper()
	Apply(t, s, "entries", entries.Schema)
	Apply(t, s, "demands", check.Schema)
}

// Apply carries out a schema in a store that lacks one of its tables.
func Apply(t testing.TB, s *store.Store, table, schema string) {
	t.Helper()
	err := s.Write(t.Context(), func(c *store.Change) error {
		if there, err := c.One(`SELECT name FROM sqlite_master WHERE name = $1`, []any{table}, new(string)); there || err != nil {
			return err
		}
		return carryOut(c, schema)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func carryOut(c *store.Change, schema string) error {
	for statement := range strings.SplitSeq(schema, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := c.Do(statement); err != nil {
			return err
		}
	}
	return nil
}
