package journal

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"heartbeat/orchestrator/store"
)

// step is how many events are removed in one transaction: others' wait for it.
const step = 200

// prune removes the oldest events beyond what is kept, each agent's beyond its share: an
// agent that fires all day pushes out its own past, not that of the others. What its Stop
// hooks have decided, an event for each turn, goes before anything else.
func (j *Journal) prune() error {
	j.writing.Lock()
	last := j.last
	j.writing.Unlock()
	if last < j.pruned+j.most/10 {
		return nil
	}
	j.pruned = last
	ctx := context.Background()
	counts, err := store.Get(ctx, j.store.Reader, countsOf)
	if err != nil {
		return err
	}
	for agent, over := range counts.excess(j.most) {
		stops := min(over, counts[agent].stops)
		err := j.remove(ctx, stops, `DELETE FROM events WHERE n IN (SELECT n FROM events WHERE agent = $1 AND kind = 'stop' ORDER BY n LIMIT $2)`, agent)
		if err == nil {
			err = j.remove(ctx, over-stops, `DELETE FROM events WHERE n IN (SELECT n FROM events WHERE agent = $1 AND kind <> 'stop' ORDER BY n LIMIT $2)`, agent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes so many events of an agent by a statement.
func (j *Journal) remove(ctx context.Context, events int64, statement, agent string) error {
	for events > 0 {
		n := min(events, step)
		err := j.store.Write(ctx, func(c *store.Change) error {
			_, err := c.Do(statement, agent, n)
			return err
		})
		if err != nil {
			return err
		}
		events -= n
	}
	return nil
}

// counts are how many events each agent has.
type counts map[string]struct{ all, stops int64 }

func countsOf(v *store.View) (counts, error) {
	all := counts{}
	err := v.Each(`SELECT agent, kind, COUNT(*) FROM events GROUP BY agent, kind`, nil, func(scan store.Scan) error {
		var agent string
		var kind Kind
		var n int64
		if err := scan(&agent, &kind, &n); err != nil {
			return err
		}
		of := all[agent]
		if of.all += n; kind == Stopped {
			of.stops += n
		}
		all[agent] = of
		return nil
	})
	return all, err
}

// excess returns how much each agent has beyond its share of most: what small
// agents leave of an equal share goes to the others.
func (all counts) excess(most int64) map[string]int64 {
	over := map[string]int64{}
	agents := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(all[a].all, all[b].all) })
	for i, agent := range agents {
		part := min(all[agent].all, most/int64(len(agents)-i))
		if all[agent].all > part {
			over[agent] = all[agent].all - part
		}
		most -= part
	}
	return over
}
