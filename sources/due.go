package sources

import "time"

// OnTime is how late a fire may be and still count as on time rather than missed. A
// wake-up, a slow disk or a restart of the process is shorter than this.
const OnTime = time.Minute

// maxAll bounds how many fires MissedAll makes up for.
const maxAll = 10

// Due returns the fires of s that must happen now, oldest first. last is the latest
// fire that happened (or the time at which the schedule was first seen). A zero
// last means that nothing was missed, and Due returns none.
//
// Of the fires after last and not after now, MissedOnce takes the latest,
// MissedAll the latest 10, MissedSkip those that are at most OnTime late.
// With a grace > 0 none is taken that is later than that.
// A fire at or before last is never due, also when the clock was set back.
func Due(s Schedule, last, now time.Time, m Missed, grace time.Duration) []time.Time {
	if last.IsZero() || !now.After(last) {
		return nil
	}
	since, count := last, 1
	switch m {
	case MissedAll:
		count = maxAll
	case MissedSkip:
		count = maxAll // of one minute: never more than two, but for a seconds field
		since = later(since, now.Add(-OnTime-1))
	}
	if grace > 0 {
		since = later(since, now.Add(-grace-1))
	}
	return latest(s, since, now, count)
}

// latest returns the latest n fires of s in (since, now]. It looks back in
// steps that double, so that a year of minutes costs what an hour does.
func latest(s Schedule, since, now time.Time, n int) []time.Time {
	for back := time.Hour; ; back *= 2 {
		from := later(since, now.Add(-back))
		var found []time.Time
		for t := s.Next(from); !t.IsZero() && !t.After(now); t = s.Next(t) {
			found = append(found, t)
		}
		if len(found) >= n || !from.After(since) || back > century {
			return found[max(0, len(found)-n):]
		}
	}
}

// century ends the search; a Duration holds 292 years.
const century = 100 * 365 * 24 * time.Hour

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Passed are fires that fell due and do not happen: how many, the first and the last.
type Passed struct {
	First, Last time.Time
	Times       int // MostPassed: those are the first ones of more
}

// MostPassed is how far fires are counted that are passed over.
const MostPassed = 10_000

// gap is a time after since and until the end, whose fires are passed over.
type gap struct{ since, until time.Time }

// gapBefore returns where the fires lie that Due has left out; the zero value: there are none.
// Of those that MissedOnce makes up for by one, none is passed over.
func gapBefore(s Schedule, last, now time.Time, due []time.Time, m Missed) gap {
	until := now
	if len(due) > 0 {
		until = due[0].Add(-1)
	}
	if first := s.Next(last); m == MissedOnce && len(due) > 0 || last.IsZero() || first.IsZero() || first.After(until) {
		return gap{}
	}
	return gap{last, until}
}

// fires counts the fires in the gap.
func (g gap) fires(s Schedule) (p Passed) {
	for at := s.Next(g.since); !at.IsZero() && !at.After(g.until) && p.Times < MostPassed; at = s.Next(at) {
		if p.Times == 0 {
			p.First = at
		}
		p.Last, p.Times = at, p.Times+1
	}
	return p
}
