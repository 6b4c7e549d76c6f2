package sources

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Moment is a time as a person writes it.
type Moment struct {
	at    time.Time // with zoned; else what clocks show, as if it were in UTC
	zoned bool
	daily bool // only a time of the day
}

// momentForm has a date, a time of the day and a zone, each of which may be missing.
var momentForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d{4}-\d{1,2}-\d{1,2})(?:[Tt ]|$))? ?(\d{1,2}:\d{2})?(:\d{2})?(\.\d{1,9})? ?([Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?$`)
})

// ErrMoment means that a text is no time.
var ErrMoment = errors.New("is not a time")

// ParseMoment reads a time: 18:30, 2026-12-01, 2026-12-01 18:30, with T for the space, with
// seconds, with Z or an offset like +01:00.
func ParseMoment(text string) (Moment, error) {
	m := momentForm().FindStringSubmatch(text)
	if m == nil || m[1] == "" && m[2] == "" || m[2] == "" && m[3]+m[4]+m[5] != "" || m[1] == "" && m[5] != "" || m[3] == "" && m[4] != "" {
		return Moment{}, ErrMoment
	}
	date, clock, seconds, zone := m[1], m[2], m[3], strings.ToUpper(m[5])
	read := Moment{zoned: zone != "", daily: date == ""}
	switch digits := strings.ReplaceAll(zone, ":", ""); {
	case zone == "" || zone == "Z" || zone == "UTC":
		zone = "Z"
	case len(digits) == len("+01"):
		zone = digits + "00"
	default:
		zone = digits
	}
	if date == "" {
		date = "2000-01-01"
	}
	if clock == "" {
		clock = "00:00"
	}
	if seconds == "" {
		seconds = ":00"
	}
	at, err := time.Parse("2006-1-2 15:04:05.999999999Z0700", date+" "+clock+seconds+m[4]+zone)
	if read.at = at; err != nil {
		return Moment{}, ErrMoment
	}
	return read, nil
}

// Next is the time itself, or the first time of the day after now. In a zone it is what the
// clocks there show: a time that they skip is the end of the gap, one that comes twice the first.
func (m Moment) Next(now time.Time, zone *time.Location) time.Time {
	at := m.onDay(now, zone, 0)
	if m.daily && !at.After(now) {
		at = m.onDay(now, zone, 1)
	}
	return at
}

// Last is the time itself, or the last time of the day that is not after now.
func (m Moment) Last(now time.Time, zone *time.Location) time.Time {
	at := m.onDay(now, zone, 0)
	if m.daily && at.After(now) {
		at = m.onDay(now, zone, -1)
	}
	return at
}

// onDay is the time, for a time of the day so many days after that of now.
func (m Moment) onDay(now time.Time, zone *time.Location, days int) time.Time {
	if m.zoned {
		return m.at
	}
	local := m.at
	if m.daily {
		y, month, d := now.In(zone).Date()
		local = time.Date(y, month, d+days, local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	}
	return FirstReach(zone, local).Add(time.Duration(local.Nanosecond()))
}
