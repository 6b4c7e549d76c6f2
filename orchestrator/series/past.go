package series

import (
	"slices"
	"time"

	"heartbeat/orchestrator/usage"
)

// Every is how much time a row is about.
type Every string

// The rows. Auto is hours up to two days, and days beyond.
const (
	Auto      Every = "auto"
	EverySlot Every = "slot"
	Hour      Every = "hour"
	Day       Every = "day"
)

// Of is what is meant for a length of time: Auto decides.
func (e Every) Of(length time.Duration) Every {
	switch {
	case e != Auto && e != "":
		return e
	case length > 48*time.Hour:
		return Day
	}
	return Hour
}

// Bounds are those of the row that a time belongs to, by the clock of the time's zone.
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

// Past is what agents did over a time.
type Past struct {
	Since, Now time.Time
	Every      Every // not Auto
	// Points are the rows in which something happened.
	Points []Point
	Watch
}

// Look adds up what agents did since a time, in rows of local time.
func Look(stateDir string, agents []string, since, now time.Time, every Every) (Past, error) {
	every = every.Of(now.Sub(since))
	watch, err := ReadWatch(stateDir, since, now)
	if err != nil {
		return Past{}, err
	}
	all := NewTable(func(at time.Time) time.Time { from, _ := every.Bounds(at.Local()); return from })
	for _, name := range agents {
		err := Read(stateDir, name, since, now, func(p Point) {
			all.Add(name, p)
			watch.Saw(p.At)
		})
		if err != nil {
			return Past{}, err
		}
	}
	return Past{since, now, every, all.Rows(), watch}, nil
}

// Row is what happened in the time of a row.
type Row struct {
	Point // the zero value but for At, if nothing is known to have happened
	Until time.Time
	// Watched is in how many of its Slots a run looked.
	Watched, Slots int
	// Unmeasured is true if a run looked, and how many were queued is not known.
	Unmeasured bool
}

// Rows are all rows of the time, those in which nothing happened, too: as many as there
// are from the first to what is settled, and at most the last so many.
func (p Past) Rows(most int) (rows []Row) {
	known := map[int64]Point{}
	for _, point := range p.Points {
		known[point.At.Unix()] = point
	}
	end := Settled(p.Now)
	for at := end.Add(-1); len(rows) < most && at.After(p.Since); {
		from, until := p.Every.Bounds(at.Local())
		row := Row{Point: known[from.Unix()], Until: until}
		row.At = from
		begin, stop := later(from, p.Since.Truncate(Slot)), earlier(until, end)
		row.Watched, row.Slots = p.Watched(begin, stop)
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
