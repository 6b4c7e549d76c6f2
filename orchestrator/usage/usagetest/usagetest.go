// Package usagetest writes and reads records of what sessions cost, for tests.
package usagetest

import (
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

var numbers atomic.Int64

// Add writes records into the store of a state directory that nobody else writes. A record
// without a number gets one.
func Add(t testing.TB, stateDir string, records ...usage.Record) {
	t.Helper()
	s, end := storetest.Open(t, stateDir)
	defer end()
	Write(t, s, records...)
}

// Write is Add into a store.
func Write(t testing.TB, s *store.Store, records ...usage.Record) {
	t.Helper()
	for i := range records {
		if records[i].Number == 0 {
			records[i].Number = numbers.Add(1)
		}
	}
	err := s.Write(t.Context(), func(c *store.Change) error {
		_, err := usage.Add(c, records...)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Read returns an agent's records.
func Read(t testing.TB, stateDir, agent string) (all []usage.Record) {
	t.Helper()
	err := usage.Read(stateDir, func(v *store.View) error {
		return usage.Each(v, agent, time.Time{}, func(r usage.Record) { all = append(all, r) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Sum is what an agent has spent in all.
func Sum(t testing.TB, stateDir, agent string) (sum usage.Sum) {
	t.Helper()
	for _, r := range Read(t, stateDir, agent) {
		sum = sum.Plus(r.Sum)
	}
	return sum
}
