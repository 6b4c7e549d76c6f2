package series

import (
	"maps"
	"math"
	"slices"
	"time"

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
	// running is true if the ten minutes that are not over are known, too.
	running bool
}

// Look adds up what agents did since a time, in rows of local time.
func Look(stateDir string, agents []string, since, now time.Time, every Every) (Past, error) {
	return look(stateDir, agents, since, now, every, math.MaxInt64, nil)
}

// Look is the function Look with what this run has not written yet: it knows the ten minutes
// that are not over, as far as they have come.
func (r *Recorder) Look(agents []string, since, now time.Time, every Every) (Past, error) {
	r.mu.Lock()
	ready, next, sampled := r.ready, r.next, maps.Clone(r.sampled)
	unwritten := r.tally.points(next, slotOf(now))
	r.mu.Unlock()
	if !ready {
		return Look(r.stateDir, agents, since, now, every)
	}
	if err := spent(r.stateDir, agents, next, slotOf(now), unwritten); err != nil {
		return Past{}, err
	}
	past, err := look(r.stateDir, agents, since, now, every, next, unwritten)
	if err == nil {
		past.running = true
		past.Saw(now)
		maps.Copy(past.measured, sampled)
	}
	return past, err
}

// look reads what agents did before a slot, and adds what of later ones is not written.
func look(stateDir string, agents []string, since, now time.Time, every Every, next int64, unwritten map[string]map[int64]Point) (Past, error) {
	every = every.Of(now.Sub(since))
	watch, err := readWatch(stateDir, since, now)
	if err != nil {
		return Past{}, err
	}
	all := newTable(func(at time.Time) time.Time { from, _ := every.Bounds(at.Local()); return from })
	for _, name := range agents {
		add := func(p Point) {
			all.Add(name, p)
			watch.Saw(p.At)
		}
		err := Read(stateDir, name, since, now, func(p Point) {
			if slotOf(p.At) < next {
				add(p)
			}
		})
		if err != nil {
			return Past{}, err
		}
		for slot, p := range unwritten[name] {
			if slot >= slotOf(since) {
				add(p)
			}
		}
	}
	return Past{Since: since, Now: now, Every: every, Points: all.Rows(), Watch: watch}, nil
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

// Rows returns all rows of the span, those in which nothing happened included, up to the
// last settled one, or of a run up to now: at most the last most of them.
func (p Past) Rows(most int) (rows []Row) {
	known := map[int64]Point{}
	for _, point := range p.Points {
		known[point.At.Unix()] = point
	}
	end := settledBy(p.Now)
	if p.running {
		end = startOf(slotOf(p.Now)).Add(Slot)
	}
	for at := end.Add(-1); len(rows) < most && at.After(p.Since); {
		from, until := p.Every.Bounds(at.Local())
		row := Row{Point: known[from.Unix()], Until: until}
		row.At = from
		begin, stop := later(from, p.Since.Truncate(Slot)), earlier(until, end)
		row.Watched, row.Slots = p.Watched(begin, stop)
		row.Running = p.running && until.After(p.Now)
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
