package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits are how much of its account's usage limits an agent may use, in percent, so
// that a person's own work has room; 0 is all of it. Outside of Active they do not
// hold.
type Limits struct {
	FiveHour, SevenDay int
	Active             Hours
}

// Hours are hours of the week. Their zero value is all of them.
type Hours struct {
	Days     [7]bool // from Sunday on
	From, To int     // minutes of the day; To is not after From where they go on past midnight
}

// At reports whether a moment, in its zone, is among the hours, and when that changes
// from true; zero: never.
func (h Hours) At(now time.Time) (is bool, until time.Time) {
	switch {
	case h == (Hours{}):
		return true, time.Time{}
	case !h.shownBy(now):
		return false, time.Time{}
	}
	days := 0
	if h.To <= h.From && minuteOf(now) >= h.From {
		days = 1
	}
	until = time.Date(now.Year(), now.Month(), now.Day()+days, 0, h.To, 0, 0, now.Location())
	// Where clocks change, that time may be missing, or come twice.
	for t := now.Truncate(time.Minute).Add(time.Minute); !t.After(until.Add(changes)); t = t.Add(time.Minute) {
		if t.Before(until.Add(-changes)) {
			t = until.Add(-changes)
		}
		if !h.shownBy(t) {
			return true, t
		}
	}
	if !until.After(now) {
		until = now.Add(changes)
	}
	return true, until // and on with the next day's
}

// changes is more than clocks are put forward or back by.
const changes = 2 * time.Hour

// shownBy reports whether a clock shows one of the hours.
func (h Hours) shownBy(now time.Time) bool {
	minute, today := minuteOf(now), now.Weekday()
	if h.To > h.From {
		return h.Days[today] && minute >= h.From && minute < h.To
	}
	return h.Days[today] && minute >= h.From || h.Days[(today+6)%7] && minute < h.To
}

func minuteOf(t time.Time) int { return 60*t.Hour() + t.Minute() }

// share reads how much of its account's limits an agent may use.
func (l *loader) share(t table) Limits {
	var s Limits
	p, ok := t["limits"]
	if !ok {
		return s
	}
	fields, ok := l.table(p, limitKeys, func(key string) string {
		if slices.Contains([]string{"memory", "cpu", "processes", "mem", "ram", "pids"}, key) {
			return "did you mean resources?"
		}
		return ""
	})
	if !ok {
		return s
	}
	s.FiveHour, s.SevenDay = l.percent(fields, "five-hour"), l.percent(fields, "seven-day")
	if p, ok := fields["active-hours"]; ok {
		if text, ok := l.filled(p); ok {
			hours, ok := parseHours(text)
			if s.Active = hours; !ok {
				l.problem(p, fmt.Sprintf("%q are not hours", cut(text)), `for example "Mon-Fri 09:00-18:00" or "22:00-06:00"`)
			}
		}
	}
	return s
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseHours reads "Mon-Fri 09:00-18:00", "Sat,Sun 10:00-24:00" and "22:00-06:00".
func parseHours(text string) (h Hours, ok bool) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 2 {
		return h, false
	}
	from, to, ok := strings.Cut(words[len(words)-1], "-")
	if h.From, ok = minutesOf(from, ok); ok {
		h.To, ok = minutesOf(to, ok)
	}
	if !ok || h.From == 24*60 || h.From == h.To {
		return Hours{}, false
	}
	if len(words) == 1 {
		h.Days = [7]bool{true, true, true, true, true, true, true}
		return h, true
	}
	for part := range strings.SplitSeq(strings.ToLower(words[0]), ",") {
		first, last, several := strings.Cut(part, "-")
		a, b := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if !several {
			b = a
		}
		if a < 0 || b < 0 {
			return Hours{}, false
		}
		for day := a; ; day = (day + 1) % 7 {
			if h.Days[day] = true; day == b {
				break
			}
		}
	}
	return h, true
}

func minutesOf(text string, ok bool) (int, bool) {
	hour, minute, has := strings.Cut(text, ":")
	h, err := strconv.Atoi(hour)
	m, err2 := strconv.Atoi(minute)
	if !ok || !has || err != nil || err2 != nil || len(hour) != 2 || len(minute) != 2 || h < 0 || m < 0 || m > 59 || h*60+m > 24*60 {
		return 0, false
	}
	return h*60 + m, true
}
