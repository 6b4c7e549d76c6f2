package usage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/deadline"
)

// Allowance is how much may be spent; 0 is no limit. Tokens are input, output and those
// written to the prompt cache, Resent those read from it; Cost is in US dollars.
type Allowance struct {
	Turns          int64
	Tokens, Resent int64
	Cost           float64
}

// Spent says which limit of an allowance is used up; "" if none is.
func (a Allowance) Spent(s Sum) string { return a.reached(s, 0) }

// Exceeded says which limit of an allowance is exceeded; "" if none is.
func (a Allowance) Exceeded(s Sum) string { return a.reached(s, 1) }

func (a Allowance) reached(s Sum, more int64) string {
	fresh := s.Input + s.Output + s.CacheWrite
	switch {
	case a.Cost > 0 && s.Cost >= a.Cost+float64(2*more-1)*1e-9: // sums of cents are not exact
		return Dollars(s.Cost) + " of " + Dollars(a.Cost)
	case a.Tokens > 0 && fresh >= a.Tokens+more:
		return fmt.Sprintf("%d of %d tokens", fresh, a.Tokens)
	case a.Resent > 0 && s.CacheRead >= a.Resent+more:
		return fmt.Sprintf("%d of %d tokens that were sent again", s.CacheRead, a.Resent)
	case a.Turns > 0 && s.Turns+s.Unseen >= a.Turns+more: // unseen turns count, too
		return fmt.Sprintf("%d of %d turns", s.Turns+s.Unseen, a.Turns)
	}
	return ""
}

// Dollars formats an amount for people: below a dollar with up to four decimals.
func Dollars(amount float64) string {
	if s := fmt.Sprintf("%.4f", amount); amount > 0 && amount < 1 && !strings.HasSuffix(s, "00") {
		return "$" + strings.TrimSuffix(s, "0")
	}
	return fmt.Sprintf("$%.2f", amount)
}

// Period is a period that can have an allowance.
type Period string

// The periods.
const (
	Hour Period = "hour"
	Day  Period = "day"
)

// Spent is what is said of a budget for the period that is used up: whose it is, and by
// what.
func (p Period) Spent(whose, what string) string {
	return fmt.Sprintf("%s for the %s is spent: %s", whose, p, what)
}

// Bound is an allowance, for the period that is running.
type Bound struct {
	Period
	Allowance
	From, Until time.Time
}

// Bounds returns those of a day and of an hour, as far as there are any, in a zone; nil: the
// local one. The day comes first: it ends no earlier than its hours.
func Bounds(day, hour Allowance, now time.Time, zone *time.Location) (all []Bound) {
	if zone == nil {
		zone = time.Local
	}
	for _, b := range []Bound{{Period: Day, Allowance: day}, {Period: Hour, Allowance: hour}} {
		if b.Allowance != (Allowance{}) {
			b.From, b.Until = b.Period.Bounds(now.In(zone))
			all = append(all, b)
		}
	}
	return all
}

// Bounds returns the period that a time is in, by the clock of the time's zone.
func (p Period) Bounds(at time.Time) (from, until time.Time) {
	if p == Day {
		return dayOf(at, 0), dayOf(at, 1)
	}
	// Not by time.Date: when clocks are set back, an hour of the clock comes twice.
	from = at.Add(-time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond()))
	return from, from.Add(time.Hour)
}

// dayOf returns the beginning of the day that is a number of days ahead. It is not always
// midnight: if clocks change then, 00:00 may be missing, or come twice.
func dayOf(at time.Time, ahead int) time.Time {
	const step = 15 * time.Minute // all changes of clocks are multiples of it
	y, m, d := at.Date()
	day := time.Date(y, m, d+ahead, 12, 0, 0, 0, at.Location()).Day()
	t := time.Date(y, m, d+ahead, 0, 0, 0, 0, at.Location())
	for t.Day() != day {
		t = t.Add(step)
	}
	for t.Add(-step).Day() == day {
		t = t.Add(-step)
	}
	return t
}

// slice is the resolution of a Meter: it divides the hours and days of all zones.
const slice = 5 * time.Minute

// Remembered is how long a Meter remembers what was spent: more than the longest day.
const Remembered = 26 * time.Hour

// Meter knows what was spent lately. The zero value: nothing.
type Meter struct{ slices []sliceSum }

type sliceSum struct {
	from time.Time
	last time.Time // when the last of it was spent
	Sum
}

// Add adds what was spent at a time. It ignores what was spent after now, by a clock
// that was ahead then: such a period would never end.
func (m *Meter) Add(s Sum, at, now time.Time) {
	m.slices = slices.DeleteFunc(m.slices, func(s sliceSum) bool { return s.from.After(now.Add(slice)) || now.Sub(s.from) > Remembered })
	if at.After(now.Add(slice)) || now.Sub(at) > Remembered {
		return
	}
	from := at.UTC().Truncate(slice)
	i, found := slices.BinarySearchFunc(m.slices, from, func(s sliceSum, at time.Time) int { return s.from.Compare(at) })
	if !found {
		m.slices = slices.Insert(m.slices, i, sliceSum{from: from})
	}
	m.slices[i].Sum, m.slices[i].last = m.slices[i].Plus(s), deadline.Since(at, now)
}

// Within returns what was spent in a period, and when the last of it was. What is older
// than the period is long does not count, nor what was spent after it: then the clock was
// set back since.
func (m *Meter) Within(from, until, now time.Time) (sum Sum, last time.Time) {
	if m == nil {
		return Sum{}, time.Time{}
	}
	for _, s := range slices.Backward(m.slices) {
		if s.from.Before(from) {
			break
		}
		if s.from.Before(until) && now.Sub(s.last) < until.Sub(from) {
			sum = sum.Plus(s.Sum)
			if s.last.After(last) {
				last = s.last
			}
		}
	}
	return sum, last
}
