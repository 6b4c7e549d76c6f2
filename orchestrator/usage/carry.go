package usage

import (
	"fmt"
	"time"

	"heartbeat/orchestrator/store"
)

// Carry takes over what was spent into a backup that is restored, so that no budget starts
// again: what either store has of it counts. before is the store in whose place the backup comes;
// nil: it cannot be read, or there is none.
func Carry(before *store.View, c *store.Change) error {
	if before == nil {
		return nil
	}
	const atOnce = 500
	var some []Record
	var failed error
	add := func() {
		if failed == nil {
			_, failed = Add(c, some...)
		}
		some = some[:0]
	}
	err := EachOf(before, time.Time{}, func(r Record) {
		if some = append(some, r); len(some) == atOnce {
			add()
		}
	})
	if add(); err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("cannot carry over what was spent since the backup: %w", err)
	}
	return nil
}
