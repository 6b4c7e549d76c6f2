package sources

import "time"

// Schedule is a parsed cron expression with its time zone. The zero value
// never fires. Two schedules can be compared with ==.
//
// Where the clock changes it follows ISC cron:
//
//   - Fixed hours ("30 2 * * *", "0 9-17 * * 1-5"): each local time fires once
//     a day. One that falls into a gap fires at the gap's end (several at once
//     are one fire); one in an overlap fires the first time.
//   - Wildcard hours ("*/30 * * * *", "0 */2 * * *"): the schedule follows
//     real time: what does not exist does not fire, what comes twice fires twice.
//
// When neither the day of month nor the day of week begins with "*", a day
// fires that matches either of them; otherwise it must match both.
// A seconds field changes nothing of this: what is said of a local time holds
// for each of its seconds. "@every D" fires at the whole multiples of D since 1970-01-01 00:00 UTC, so
// that a restart does not move it.
type Schedule struct {
	spec   string
	loc    *time.Location
	every  int64 // seconds, or 0 for fields
	fields fields
}

// String returns the expression as it was written.
func (s Schedule) String() string { return s.spec }

// Location returns the time zone.
func (s Schedule) Location() *time.Location { return s.loc }

// In returns the schedule in another time zone.
func (s Schedule) In(loc *time.Location) Schedule {
	s.loc = loc
	return s
}

// The years in which Next searches: those that dates are commonly written in.
const firstYear, lastYear = 1, 9990

// Next returns the first fire after t, in the schedule's zone and in whole
// seconds, or the zero time when there is none before the year 9990.
func (s Schedule) Next(t time.Time) time.Time {
	if s.loc == nil || t.Year() <= firstYear || t.Year() >= lastYear {
		return time.Time{}
	}
	u, ok := s.next(t.Unix())
	if !ok {
		return time.Time{}
	}
	return time.Unix(u, 0).In(s.loc)
}

func (s Schedule) next(u int64) (int64, bool) {
	switch {
	case s.every > 0:
		return (floorDiv(u, s.every) + 1) * s.every, true
	case s.fields.hourStar:
		return s.nextReal(u)
	default:
		local, ok := s.fields.after(latestLocal(s.loc, u))
		if !ok {
			return 0, false
		}
		return firstReach(s.loc, local), true
	}
}

// nextReal finds the next instant whose local time matches. It searches one stretch
// between clock changes after the other.
func (s Schedule) nextReal(u int64) (int64, bool) {
	sp := spanAt(s.loc, u)
	from := u + sp.offset
	// Schedules fire at least once in 40 years; clocks change a few times a year.
	for range 400 {
		local, ok := s.fields.after(from)
		if !ok {
			return 0, false
		}
		if v := local - sp.offset; v < sp.end {
			return v, true
		}
		at := sp.end
		sp = spanAt(s.loc, at)
		from = at + sp.offset - 1
	}
	return 0, false
}

// Label names the fire at t: two fires with the same label are the same fire. With
// fixed hours it is the requested local calendar minute ("2026-03-08T02:30", even
// where that minute does not exist), or the second if the expression has a seconds
// field. With wildcard hours the UTC offset follows, because the minute may occur
// twice. With @every it is the instant in UTC.
func (s Schedule) Label(t time.Time) string {
	clock := "2006-01-02T15:04"
	if s.fields.hasSeconds {
		clock += ":05"
	}
	if s.every > 0 || s.loc == nil {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	t = t.In(s.loc)
	if s.fields.hourStar {
		return t.Format(clock + "-07:00")
	}
	u := t.Unix()
	local, ok := s.fields.after(latestLocal(s.loc, u-1))
	if !ok || firstReach(s.loc, local) != u {
		return t.Format(clock) // no fire of this schedule
	}
	return time.Unix(local, 0).UTC().Format(clock)
}
