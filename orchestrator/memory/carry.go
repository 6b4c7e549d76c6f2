package memory

import (
	"fmt"
	"strings"

	"heartbeat/orchestrator/store"
)

// carried are the tables of what has fired, and what of a row counts that both stores have.
var carried = []struct {
	table   string
	columns []string
	same    []string // what is done with a row that is there, each in turn
}{
	{
		"triggers",
		[]string{"agent", "trigger", "place", "kind", "name", "named", "core", "sieve", "prompt", "gone", "fired", "delay", "was", "changed", "polled"},
		[]string{
			"(agent, trigger) DO UPDATE SET fired = excluded.fired WHERE excluded.fired > triggers.fired",
			"(agent, trigger) DO UPDATE SET polled = excluded.polled WHERE excluded.polled > triggers.polled",
		},
	},
	{"trigger_names", []string{"agent", "name", "used"}, []string{"(agent, name) DO UPDATE SET used = excluded.used WHERE excluded.used > trigger_names.used"}},
	{
		"seen_files",
		[]string{"agent", "trigger", "file", "size", "modified", "changed", "sum"},
		[]string{"(agent, trigger, file) DO UPDATE SET size = excluded.size, modified = excluded.modified, changed = excluded.changed, sum = excluded.sum"},
	},
	{"fired_keys", []string{"agent", "trigger", "key", "n"}, []string{"(agent, trigger, key) DO NOTHING"}},
	{"recent_fires", []string{"agent", "trigger", "at", "n"}, []string{"(agent, trigger, at, n) DO NOTHING"}},
}

// Carry takes over what has fired into a backup that is restored, so that nothing fires again:
// of each trigger the later fire counts, and what either store has seen. before is the store in
// whose place the backup comes; nil: it cannot be read, or there is none.
func Carry(before *store.View, c *store.Change) error {
	if before == nil {
		return nil
	}
	for _, t := range carried {
		places := make([]string, len(t.columns))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		names := strings.Join(t.columns, ", ")
		err := before.Each(`SELECT `+names+` FROM `+t.table, nil, func(scan store.Scan) error {
			row, into := make([]any, len(t.columns)), make([]any, len(t.columns))
			for i := range row {
				into[i] = &row[i]
			}
			if err := scan(into...); err != nil {
				return err
			}
			for _, same := range t.same {
				if _, err := c.Do(`INSERT INTO `+t.table+` (`+names+`) VALUES (`+strings.Join(places, ", ")+`) ON CONFLICT `+same, row...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot carry over what has fired since the backup: %w", err)
		}
	}
	return nil
}
