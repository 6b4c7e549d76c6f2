package series

import (
	"context"
	"fmt"
	"strings"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// everybody stands in the place of an agent for what all of them did.
const everybody = ""

// added are the columns that add up, in their order.
var added = []string{"done", "failed", "sessions", "fires", "turns", "calls", "input", "output", "cache_read", "cache_write", "cost", "unseen", "unpriced", "guessed"}

// fields are those of a point, in the order of added.
func (p *Point) fields() []any {
	return []any{
		&p.Done, &p.Failed, &p.Sessions, &p.Fires, &p.Turns, &p.Calls, &p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.Cost, &p.Unseen, &p.Unpriced, &p.Guessed,
	}
}

// insert has a row's values: agent, at, looked, queued, late, and those that add up.
var insert = `INSERT INTO series (agent, at, looked, queued, late, ` + strings.Join(added, ", ") + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT (agent, at) DO `

// merged is insert, added to a row that is there, whose depth is queued then.
func merged(queued string) string {
	set := []string{"queued = " + queued, "looked = " + larger("looked"), "late = " + larger("late")}
	for _, name := range added {
		set = append(set, fmt.Sprintf("%s = series.%[1]s + excluded.%[1]s", name))
	}
	return insert + `UPDATE SET ` + strings.Join(set, ", ")
}

func larger(name string) string {
	return fmt.Sprintf("CASE WHEN excluded.%s > series.%[1]s THEN excluded.%[1]s ELSE series.%[1]s END", name)
}

var (
	then   = merged(larger("queued"))
	beside = merged("series.queued + excluded.queued")
)

func put(c *store.Change, statement, agent string, looked bool, p Point) (rows int64, err error) {
	args := []any{agent, store.Millis(startOf(slotOf(p.At))), looked, p.Queued, p.Late.Milliseconds()}
	return c.Do(statement, append(args, p.fields()...)...)
}

// Add adds what an agent did in a slot to its row and to that of all. A point has no depth:
// see Recorder.
func Add(c *store.Change, agent string, p Point) error {
	for _, of := range []string{agent, everybody} {
		if _, err := put(c, then, of, false, p); err != nil {
			return err
		}
	}
	return nil
}

// Take takes over a slot of an agent as an earlier version has written it, unless it is there.
func Take(c *store.Change, agent string, p Point) error {
	rows, err := put(c, insert+`NOTHING`, agent, false, p)
	if err == nil && rows > 0 {
		_, err = put(c, beside, everybody, false, p)
	}
	return err
}

// Join is Take where what is there is of other things that the agent did in the slot.
func Join(c *store.Change, agent string, p Point) error {
	_, err := put(c, then, agent, false, p)
	if err == nil {
		_, err = put(c, beside, everybody, false, p)
	}
	return err
}

// Looked notes that a run was there in a slot, and with looked how much all queues held.
func Looked(c *store.Change, at time.Time, looked bool, queued int64) error {
	_, err := put(c, then, everybody, looked, Point{At: at, Queued: queued})
	return err
}

// Held notes how much an agent's queue held in a slot.
func Held(c *store.Change, agent string, at time.Time, queued int64) error {
	_, err := put(c, then, agent, false, Point{At: at, Queued: queued})
	return err
}

// Bill writes records of what sessions cost, and adds those that are new to the series.
func Bill(c *store.Change, records ...usage.Record) error {
	written, err := usage.Add(c, records...)
	if err != nil {
		return err
	}
	for _, r := range written {
		if r.Sum == (usage.Sum{}) {
			continue
		}
		if err := Add(c, r.Agent, Point{At: r.At, Sum: r.Sum}); err != nil {
			return err
		}
	}
	return nil
}

// each slot and all slots of an agent in a span of time.
var (
	slots  = `SELECT at, queued, late, ` + strings.Join(added, ", ") + ` FROM series WHERE agent = $1 AND at >= $2 AND at < $3 ORDER BY at`
	summed = `SELECT MIN(at), MAX(queued), MAX(late), SUM(` + strings.Join(added, "), SUM(") + `) FROM series WHERE agent = $1 AND at >= $2 AND at < $3 GROUP BY agent`
)

func ask(v *store.View, question, agent string, from, until time.Time, take func(Point)) error {
	return v.Each(question, []any{agent, store.Millis(from), store.Millis(until)}, func(scan store.Scan) error {
		var p Point
		var at, late int64
		if err := scan(append([]any{&at, &p.Queued, &late}, p.fields()...)...); err != nil {
			return err
		}
		p.At, p.Late = store.Time(at), time.Duration(late)*time.Millisecond
		take(p)
		return nil
	})
}

// Each gives take the slots of an agent in which it did something, from the one with a time in
// it on and before another time.
func Each(v *store.View, agent string, since, until time.Time, take func(Point)) error {
	return ask(v, slots, agent, startOf(slotOf(since)), until, take)
}

// agents are those that have rows, with the time of each one's first.
const agents = `WITH RECURSIVE a (name) AS (
		SELECT MIN(agent) FROM series UNION ALL SELECT (SELECT MIN(agent) FROM series WHERE agent > a.name) FROM a WHERE a.name IS NOT NULL
	) SELECT name, (SELECT MIN(at) FROM series WHERE agent = a.name) FROM a WHERE name IS NOT NULL`

const (
	// Longest is how long rows are kept.
	Longest = 400 * 24 * time.Hour
	// atOnce is how many of an agent's are removed at once: the clock may be wrong.
	atOnce = 1000
)

// old removes an agent's first rows before a time.
const old = `DELETE FROM series WHERE agent = $1 AND at IN (SELECT at FROM series WHERE agent = $2 AND at < $3 ORDER BY at LIMIT $4)`

// Prune removes some of the rows that are too old. It is called each hour.
func Prune(ctx context.Context, s *store.Store, now time.Time) error {
	since := store.Millis(now.Add(-Longest))
	var have []string
	err := s.Read(ctx, func(v *store.View) error {
		return v.Each(agents, nil, func(scan store.Scan) error {
			var name string
			var first int64
			if err := scan(&name, &first); err != nil {
				return err
			}
			if first < since {
				have = append(have, name)
			}
			return nil
		})
	})
	for _, name := range have {
		if err == nil {
			err = s.Remove(ctx, atOnce, old, name, name, since)
		}
	}
	return err
}
