package sources

import (
	"math/bits"
	"time"
)

const secondsPerDay = 24 * 60 * 60

// fields is a cron expression as bit sets. It knows only local calendars: its times
// are "local seconds", seconds since 1970-01-01 00:00 on a clock that never changes
// for daylight saving.
type fields struct {
	second, minute, hour, dom, month, dow uint64
	// hasSeconds: second was written; without it there is a fire in second 0.
	hasSeconds bool
	// hourStar: the hours follow real time. dayStar: dom and dow must both match.
	hourStar, dayStar bool
}

// everFires reports whether a day exists on which f fires. Every date of the
// year, 29 February too, falls on each day of the week sooner or later.
func (f *fields) everFires() bool {
	if f.second == 0 || f.minute == 0 || f.hour == 0 || f.month == 0 {
		return false
	}
	if !f.dayStar && f.dow != 0 {
		return true
	}
	for m := time.January; m <= time.December; m++ {
		longest := daysIn(2024, m) // a leap year
		if f.month>>uint(m)&1 != 0 && f.dom&(1<<(longest+1)-1) != 0 && f.dow != 0 {
			return true
		}
	}
	return false
}

// after returns the first matching local time after local, in local seconds.
// It reports false when there is none within 42 years: 29 February on a
// given weekday needs up to 40.
func (f *fields) after(local int64) (int64, bool) {
	from := local + 1
	day := floorDiv(from, secondsPerDay)
	year, month, dom := time.Unix(day*secondsPerDay, 0).UTC().Date()
	if f.days(year, month)>>uint(dom)&1 != 0 {
		if s, ok := f.timeOfDay(int(from - day*secondsPerDay)); ok {
			return day*secondsPerDay + int64(s), true
		}
	}
	first, _ := f.timeOfDay(0)
	fromDay := dom + 1
	for range 42 * 12 {
		if left := f.days(year, month) >> uint(fromDay) << uint(fromDay); left != 0 {
			d := bits.TrailingZeros64(left)
			at := time.Date(year, month, d, 0, 0, first, 0, time.UTC)
			return at.Unix(), true
		}
		fromDay = 1
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return 0, false
}

// timeOfDay returns the first matching second of a day at or after from, and
// whether there is one.
func (f *fields) timeOfDay(from int) (int, bool) {
	h, m, sec := from/3600, from/60%60, from%60
	firstSecond, firstMinute := bits.TrailingZeros64(f.second), bits.TrailingZeros64(f.minute)
	if f.hour>>uint(h)&1 != 0 {
		if f.minute>>uint(m)&1 != 0 {
			if left := f.second >> uint(sec); left != 0 {
				return from + bits.TrailingZeros64(left), true
			}
		}
		if left := f.minute >> uint(m+1); left != 0 {
			return h*3600 + (m+1+bits.TrailingZeros64(left))*60 + firstSecond, true
		}
	}
	left := f.hour >> uint(h+1)
	if left == 0 {
		return 0, false
	}
	return (h+1+bits.TrailingZeros64(left))*3600 + firstMinute*60 + firstSecond, true
}

// days returns the matching days of a month: bit n for day n.
func (f *fields) days(year int, month time.Month) uint64 {
	if f.month>>uint(month)&1 == 0 {
		return 0
	}
	// Turn the week so that bit 0 is the weekday of the first, and repeat it.
	first := uint(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	week := (f.dow>>first | f.dow<<(7-first)) & 0x7f
	byWeek := (week | week<<7 | week<<14 | week<<21 | week<<28) << 1
	matching := f.dom | byWeek
	if f.dayStar {
		matching = f.dom & byWeek
	}
	return matching & (1<<(daysIn(year, month)+1) - 2)
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// floorDiv divides towards minus infinity; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
