// Package storetest gives tests a store of their own.
package storetest

import (
	"os"
	"testing"

	"heartbeat/orchestrator/store"
)

// New makes a store in a test's state directory, which is made private, and opens it until
// the test ends. A store that is there already is opened.
func New(t testing.TB, stateDir string) *store.Store {
	t.Helper()
	s, end := Open(t, stateDir)
	t.Cleanup(end)
	return s
}

// Write changes the store in a state directory, which nobody has open.
func Write(t testing.TB, stateDir string, act func(*store.Change) error) {
	t.Helper()
	s, end := Open(t, stateDir)
	defer end()
	if err := s.Write(t.Context(), act); err != nil {
		t.Fatal(err)
	}
}

// Open is New until end is called.
func Open(t testing.TB, stateDir string) (s *store.Store, end func()) {
	t.Helper()
	if err := os.Chmod(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := store.Take(t.Context(), stateDir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = store.OpenOrCreate(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return s, func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = l.Release()
	}
}
