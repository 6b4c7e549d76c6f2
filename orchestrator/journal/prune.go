package journal

import (
	"context"

	"heartbeat/orchestrator/store"
)

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
	all, stops, err := j.counts(ctx)
	if err != nil {
		return err
	}
	for agent, over := range store.Excess(all, j.most) {
		first := min(over, stops[agent])
		err := j.store.Remove(ctx, first, `DELETE FROM events WHERE n IN (SELECT n FROM events WHERE agent = $1 AND kind = 'stop' ORDER BY n LIMIT $2)`, agent)
		if err == nil {
			err = j.store.Remove(ctx, over-first, `DELETE FROM events WHERE n IN (SELECT n FROM events WHERE agent = $1 AND kind <> 'stop' ORDER BY n LIMIT $2)`, agent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counts returns how many events each agent has, and how many of them are Stops.
func (j *Journal) counts(ctx context.Context) (all, stops map[string]int64, err error) {
	all, stops = map[string]int64{}, map[string]int64{}
	err = j.store.Read(ctx, func(v *store.View) error {
		return v.Each(`SELECT agent, kind, COUNT(*) FROM events GROUP BY agent, kind`, nil, func(scan store.Scan) error {
			var agent string
			var kind Kind
			var n int64
			if err := scan(&agent, &kind, &n); err != nil {
				return err
			}
			if all[agent] += n; kind == Stopped {
				stops[agent] += n
			}
			return nil
		})
	})
	return all, stops, err
}
