package usage

import (
	"context"
	"time"

	"heartbeat/orchestrator/store"
)

const (
	// Most is how many records of a fleet are kept.
	Most = 1_000_000
	// Longest is how long they are kept.
	Longest = 400 * 24 * time.Hour
	// atOnce is how many are removed at once because of their age: the clock may be wrong.
	atOnce = 5000
)

// Prune removes the oldest records beyond what is kept, each agent's beyond its share, and some
// of those that are too old. It is called each hour.
func Prune(ctx context.Context, s *store.Store, now time.Time) error {
	return prune(ctx, s, now.Add(-Longest), Most)
}

func prune(ctx context.Context, s *store.Store, since time.Time, most int64) error {
	all, from := map[string]int64{}, store.Millis(since)
	err := s.Read(ctx, func(v *store.View) error {
		return v.Each(`SELECT agent, COUNT(*) FROM usage WHERE at >= $1 GROUP BY agent`, []any{from}, func(scan store.Scan) error {
			var agent string
			var n int64
			err := scan(&agent, &n)
			all[agent] = n
			return err
		})
	})
	if err == nil {
		err = s.Remove(ctx, atOnce, `DELETE FROM usage WHERE n IN (SELECT n FROM usage WHERE at < $1 ORDER BY at LIMIT $2)`, from)
	}
	for agent, over := range store.Excess(all, most) {
		if err == nil {
			err = s.Remove(ctx, over, `DELETE FROM usage WHERE n IN (SELECT n FROM usage WHERE agent = $1 AND at >= $2 ORDER BY at LIMIT $3)`, agent, from)
		}
	}
	return err
}
