package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"heartbeat/orchestrator/store"
)

// columns are those of the table usage but n, in the order in which values and scan have them.
const columns = `session, delivery, number, at, agent, account, agent_group, entry, source, attempt,
	turns, calls, input, output, cache_read, cache_write, cost, unseen, unpriced, guessed, began, transcript, start, total, unknown, agent_key`

// sums are the columns of a Sum, added up.
const sums = `COALESCE(SUM(turns), 0), COALESCE(SUM(calls), 0), COALESCE(SUM(input), 0), COALESCE(SUM(output), 0), COALESCE(SUM(cache_read), 0),
	COALESCE(SUM(cache_write), 0), COALESCE(SUM(cost), 0.0), COALESCE(SUM(unseen), 0), COALESCE(SUM(unpriced), 0), COALESCE(SUM(guessed), 0)`

// fields are where the columns of a sum are scanned into.
func (s *Sum) fields() []any {
	return []any{&s.Turns, &s.Calls, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost, &s.Unseen, &s.Unpriced, &s.Guessed}
}

// most is more than a record can have of anything. The client's figures are what an agent makes
// of them, and a sum of them all must stay a number.
const most = 1 << 32

// within returns a sum without figures beyond reason.
func (s Sum) within() Sum {
	for _, f := range s.fields() {
		switch f := f.(type) {
		case *int64:
			*f = min(max(-most, *f), most)
		case *float64:
			if *f = min(max(-most, *f), most); math.IsNaN(*f) { // it is no number
				*f = 0
			}
		}
	}
	return s
}

// Add writes records, and returns those that were not there already: a record's session,
// delivery and number are its key.
func Add(c *store.Change, records ...Record) (added []Record, err error) {
	var n int64
	if _, err := c.One(newest, nil, &n); err != nil {
		return nil, err
	}
	for _, r := range records {
		r.Sum = r.Sum.within()
		s := r.Sum
		rows, err := c.Do(`INSERT INTO usage (n, `+columns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, `+keyOf+`)
			ON CONFLICT (session, delivery, number) DO NOTHING`,
			n+1, r.Session, r.Delivery, r.Number, store.Millis(r.At), r.Agent, r.Account, r.Group, r.Entry, r.Source, r.Attempt,
			s.Turns, s.Calls, s.Input, s.Output, s.CacheRead, s.CacheWrite, s.Cost, s.Unseen, s.Unpriced, s.Guessed,
			store.Millis(r.Kept.Began), r.Kept.Transcript, r.Kept.From, r.Kept.Total, r.Kept.Unknown, r.Agent)
		if err != nil {
			return nil, err
		}
		if rows > 0 {
			n++
			added = append(added, r)
		}
	}
	return added, nil
}

// keyOf is the key of the agent that has the name of the last parameter of Add: that of one that
// is gone only if none has it now.
const keyOf = `COALESCE((SELECT a.agent FROM agents a WHERE a.name = $27 ORDER BY a.gone LIMIT 1), $27)`

// What is asked; none reads all records.
const (
	ofAgent    = `WHERE agent = $1 AND at >= $2 ORDER BY at, n`
	ofAll      = `WHERE at >= $1 ORDER BY at, n`
	afterMark  = `WHERE agent = $1 AND at >= $2 AND n > $3 ORDER BY at, n`
	ofSession  = `WHERE session = $1 ORDER BY number`
	sumOfAgent = `SELECT ` + sums + ` FROM usage WHERE agent_key = COALESCE((SELECT a.agent FROM agents a WHERE a.name = $1 AND a.gone = 0), $1) AND at >= $2`
	sumOn      = `SELECT ` + sums + ` FROM usage WHERE delivery = $1 AND session <> $2`
	sumIn      = `SELECT ` + sums + ` FROM usage WHERE session = $1`
	oldest     = `SELECT at FROM usage WHERE agent = $1 ORDER BY at LIMIT 1`
	newest     = `SELECT COALESCE(MAX(n), 0) FROM usage`
	// DISTINCT would read all of the index.
	agents = `WITH RECURSIVE a (name) AS (
			SELECT MIN(agent) FROM usage UNION ALL SELECT (SELECT MIN(agent) FROM usage WHERE agent > a.name) FROM a WHERE a.name IS NOT NULL
		) SELECT name FROM a WHERE name IS NOT NULL`
)

// each gives take the records that a condition names, in an order.
func each(v *store.View, which string, args []any, take func(n int64, r Record)) error {
	return v.Each(`SELECT n, `+columns+` FROM usage `+which, args, func(scan store.Scan) error {
		var n, at, began int64
		var r Record
		to := []any{&n, &r.Session, &r.Delivery, &r.Number, &at, &r.Agent, &r.Account, &r.Group, &r.Entry, &r.Source, &r.Attempt}
		to = append(append(to, r.fields()...), &began, &r.Kept.Transcript, &r.Kept.From, &r.Kept.Total, &r.Kept.Unknown, &r.Key)
		if err := scan(to...); err != nil {
			return err
		}
		r.At, r.Kept.Began = store.Time(at), store.Time(began)
		take(n, r)
		return nil
	})
}

// Each gives take the records of an agent from a time on, the oldest first.
func Each(v *store.View, agent string, since time.Time, take func(Record)) error {
	return each(v, ofAgent, []any{agent, store.Millis(since)}, func(_ int64, r Record) { take(r) })
}

// EachOf is Each for all agents.
func EachOf(v *store.View, since time.Time, take func(Record)) error {
	return each(v, ofAll, []any{store.Millis(since)}, func(_ int64, r Record) { take(r) })
}

// Mark is how far records were read.
type Mark int64

// After is Each for those that were written after a mark.
func After(v *store.View, agent string, since time.Time, m Mark, take func(Record)) error {
	return each(v, afterMark, []any{agent, store.Millis(since), int64(m)}, func(_ int64, r Record) { take(r) })
}

// Here returns the mark of the last record that there is.
func Here(v *store.View) (m Mark, err error) {
	_, err = v.One(newest, nil, (*int64)(&m))
	return m, err
}

// Since is what an agent has spent from a time on, also under another name.
func Since(v *store.View, agent string, since time.Time) (s Sum, err error) {
	_, err = v.One(sumOfAgent, []any{agent, store.Millis(since)}, s.fields()...)
	return s, err
}

// On is what was spent on a delivery, in all sessions but one.
func On(v *store.View, delivery, but string) (s Sum, err error) {
	_, err = v.One(sumOn, []any{delivery, but}, s.fields()...)
	return s, err
}

// In is what was spent in a session.
func In(v *store.View, session string) (s Sum, err error) {
	_, err = v.One(sumIn, []any{session}, s.fields()...)
	return s, err
}

// Agents returns the agents that have records, sorted.
func Agents(v *store.View) (names []string, err error) {
	err = v.Each(agents, nil, func(scan store.Scan) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Oldest returns when the oldest record of an agent was written; zero: there is none.
func Oldest(v *store.View, agent string) (time.Time, error) {
	var at int64
	_, err := v.One(oldest, []any{agent}, &at)
	return store.Time(at), err
}

// Read has look see what a fleet's sessions have cost. A fleet without a store has nothing
// to see.
func Read(stateDir string, look func(*store.View) error) error {
	ctx := context.Background()
	r, err := store.OpenReader(ctx, stateDir)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err == nil {
		err = errors.Join(r.Read(ctx, look), r.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot read what agents have done and spent: %w", err)
	}
	return nil
}
