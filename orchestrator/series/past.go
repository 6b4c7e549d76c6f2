package series

import (
	"slices"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// Every is how much time a row covers.
type Every string

// The lengths of rows. Auto means hours for up to two days, otherwise days.
const (
	Auto      Every = "auto"
	EverySlot Every = "slot"
	Hour      Every = "hour"
	Day       Every = "day"
)

// Of returns the length to use for a span of time: it resolves Auto.
func (e Every) Of(length time.Duration) Every {
	switch {
	case e != Auto && e != "":
		return e
	case length > 48*time.Hour:
		return Day
	}
	return Hour
}

// Bounds returns when the row with a time in it begins and ends, in the time's zone.
func (e Every) Bounds(at time.Time) (from, until time.Time) {
	switch e {
	case Day:
		return usage.Day.Bounds(at)
	case Hour:
		return usage.Hour.Bounds(at)
	}
	from = startOf(slotOf(at)).In(at.Location())
	return from, from.Add(Slot)
}

// Past is what agents did in a span of time.
type Past struct {
	Since, Now time.Time
	Every      Every // not Auto
	// Points are the rows in which something happened, in the order of time.
	Points []Point
	Watch
}

// Look adds up what agents, or without any all of them, did since a time, in rows of local
// time. What is after now, by a clock that was ahead then, is left out.
func Look(v *store.View, agents []string, since, now time.Time, every Every) (Past, error) {
	past := Past{Since: since, Now: now, Every: every.Of(now.Sub(since))}
	var err error
	if past.Watch, err = watch(v, since, now); err != nil {
		return past, err
	}
	if len(agents) == 0 {
		agents = []string{everybody}
	}
	all := map[int64]Point{}
	for _, agent := range agents {
		err := past.each(v, agent, func(p Point) {
			sum := all[p.At.Unix()]
			sum.At = p.At
			all[p.At.Unix()] = sum.Beside(p)
		})
		if err != nil {
			return past, err
		}
	}
	for _, p := range all {
		if p.happened() {
			past.Points = append(past.Points, p)
		}
	}
	slices.SortFunc(past.Points, func(a, b Point) int { return a.At.Compare(b.At) })
	return past, nil
}

// happened reports whether anything did: a row may say only that a run was there.
func (p Point) happened() bool {
	p.At = time.Time{}
	return p != Point{}
}

// each gives take the rows of an agent. Those of more than a slot are added up by the store,
// each by a question of its own: it need not sort them.
func (p Past) each(v *store.View, agent string, take func(Point)) error {
	end := startOf(slotOf(p.Now)).Add(Slot)
	if p.Every == EverySlot {
		return Each(v, agent, p.Since, end, func(q Point) {
			q.At = q.At.Local()
			take(q)
		})
	}
	for at := later(startOf(slotOf(p.Since)), p.Now.Add(-Longest-24*time.Hour)); at.Before(end); {
		begin, until := p.Every.Bounds(at.Local())
		err := ask(v, summed, agent, at, earlier(until, end), func(q Point) {
			q.At = begin
			take(q)
		})
		if err != nil {
			return err
		}
		at = until
	}
	return nil
}

// Row is what happened in the time of a row.
type Row struct {
	Point // zero except for At if nothing is known to have happened
	Until time.Time
	// Watched is the number of its Slots in which a run was there to record.
	Watched, Slots int
	// Unmeasured is true if a run was there, but the depth of the queues is not known.
	Unmeasured bool
	// Running is true if it is not over.
	Running bool
}

// Rows returns all rows of the span up to now, those in which nothing happened included: at
// most the last most of them.
func (p Past) Rows(most int) (rows []Row) {
	known := map[int64]Point{}
	for _, point := range p.Points {
		known[point.At.Unix()] = point
	}
	end := startOf(slotOf(p.Now)).Add(Slot)
	for at := end.Add(-1); len(rows) < most && at.After(p.Since); {
		from, until := p.Every.Bounds(at.Local())
		row := Row{Point: known[from.Unix()], Until: until}
		row.At = from
		begin, stop := later(from, p.Since.Truncate(Slot)), earlier(until, end)
		row.Watched, row.Slots = p.Watched(begin, stop)
		row.Running = until.After(p.Now)
		row.Unmeasured = row.Queued == 0 && p.Unmeasured(begin, stop)
		rows = append(rows, row)
		at = from.Add(-1)
	}
	slices.Reverse(rows)
	return rows
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
