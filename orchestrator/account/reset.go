package account

import (
	"cmp"
	"time"

	"heartbeat/hook/client"
)

// Longest is the length of the longest limit: nothing is parked for longer. Furthest is how
// far away its end may be by a clock that shows no seconds.
const (
	Longest  = client.SevenDays
	Furthest = Longest + toTheMinute
)

// Source says how the end of a limit is known.
type Source string

// The sources, the most certain first.
const (
	// ByStatusLine: the client's figures name the time.
	ByStatusLine Source = "status-line"
	// ByTwoSignals: what the client told its hook and what it wrote into its record
	// of the conversation name the same minute.
	ByTwoSignals Source = "two-signals"
	// ByWords: one of them names it; a text that only quotes such words could do that, too.
	ByWords Source = "words"
	// ByBackOff: nothing is known; it is tried again.
	ByBackOff Source = "back-off"
)

// Evidence is what a session tells about the limit that ended it. The agent can write
// all of it.
type Evidence struct {
	Told    string          // to its hook, in words for people
	Written *client.Refusal // in its record of the conversation, or nil
	Limits  client.Limits   // the last figures that it showed
	// Zone is the client's, for words that name no zone.
	Zone *time.Location
}

// Reset is when a limit ends.
type Reset struct {
	// At is when the next request is accepted; zero: not known.
	At     time.Time
	Source Source
	// Model is true if it is the limit of one model; others may use another model.
	Model bool
}

// Shared reports whether it is certain enough to apply to all agents of the account.
func (r Reset) Shared() bool {
	return !r.Model && (r.Source == ByStatusLine || r.Source == ByTwoSignals)
}

const (
	// exact is how long after its moment a limit counts as over: clocks differ.
	exact = 2 * time.Second
	// toTheMinute is the same for words, which omit the seconds: most of a minute, so
	// that the first turn comes within a minute, whichever second was meant.
	toTheMinute = 55 * time.Second
	// bygone is how far in the past the time may be that was meant: the client told
	// it late, or clocks differ. A time further back is tomorrow's, or next week's for
	// a weekly limit.
	bygone = 15 * time.Minute
	// full is the percentage from which a window counts as full, as the client rounds.
	full = 99.5
)

// Reset says when the limit ends, and how that is known: a pure function of what was
// told and of the time.
func (e Evidence) Reset(now time.Time) Reset {
	told, toldModel := e.words(e.Told, now)
	var written time.Time
	var model bool
	if w := e.Written; w != nil && (w.Status == 429 || w.Kind == client.Claude.Hooks.Limited) {
		written, model = e.words(w.Text, now)
	}
	r := Reset{Source: ByBackOff, Model: toldModel || model}
	agree := !told.IsZero() && told.Equal(written)
	said := told
	if said.IsZero() {
		said = written
	}
	switch at := e.figure(said, now); {
	case !at.IsZero():
		r.At, r.Source = at.Add(exact), ByStatusLine
	case said.IsZero():
	case agree:
		r.At, r.Source = said.Add(toTheMinute), ByTwoSignals
	default:
		r.At, r.Source = said.Add(toTheMinute), ByWords
	}
	if r.At.IsZero() || !r.At.After(now) {
		return Reset{Source: ByBackOff, Model: r.Model}
	}
	return r
}

// figure returns the end of the window that is used up, else of the window that the
// words mean; zero: there is none.
func (e Evidence) figure(said, now time.Time) time.Time {
	var used, meant time.Time
	for _, w := range []struct {
		client.Limit
		length time.Duration
	}{{e.Limits.FiveHour, client.FiveHours}, {e.Limits.SevenDay, client.SevenDays}} {
		if !w.Resets.After(now) {
			continue
		}
		resets := w.Resets
		if last := now.Add(w.length); resets.After(last) {
			resets = last
		}
		if w.Used >= full && resets.After(used) {
			used = resets
		}
		if !said.IsZero() && !resets.Before(said) && resets.Sub(said) < time.Minute && resets.After(meant) {
			meant = resets
		}
	}
	if used.IsZero() {
		return meant
	}
	return used
}

// words returns the beginning of the minute that a text names; zero: it names none.
func (e Evidence) words(text string, now time.Time) (minute time.Time, model bool) {
	l, ok := client.Claude.Hooks.Limit(text)
	if !ok {
		return time.Time{}, l.Model
	}
	zone := e.Zone
	if l.Zone != "" {
		named, err := time.LoadLocation(l.Zone)
		if err != nil {
			return time.Time{}, l.Model
		}
		zone = named
	}
	minute = next(l, now.In(cmp.Or(zone, time.Local)))
	length := cmp.Or(l.Window, Longest)
	if last := now.Add(length); minute.After(last) {
		minute = last.Truncate(time.Minute)
	}
	return minute, l.Model
}

// next returns the next time at which a clock shows a time of day; now is in its zone.
func next(l client.LimitWords, now time.Time) time.Time {
	at := func(year int, month time.Month, day int) time.Time {
		return later(time.Date(year, month, day, l.Hour, l.Minute, 0, 0, now.Location()))
	}
	earliest := now.Add(-bygone)
	if l.Window == Longest {
		earliest = now.Add(-time.Minute)
	}
	switch {
	case l.Month == 0:
		for days := -1; ; days++ { // yesterday's may have been minutes ago
			if t := at(now.Year(), now.Month(), now.Day()+days); t.After(earliest) {
				return t
			}
		}
	case l.Year != 0:
		return at(l.Year, l.Month, l.Day)
	}
	t := at(now.Year(), l.Month, l.Day)
	if !t.After(earliest) {
		t = at(now.Year()+1, l.Month, l.Day)
	}
	return t
}

// later returns the later of two times at which the clock shows the same, where clocks
// were set back.
func later(t time.Time) time.Time {
	for _, shift := range []time.Duration{2 * time.Hour, time.Hour, 30 * time.Minute} {
		u := t.Add(shift)
		if u.Hour() == t.Hour() && u.Minute() == t.Minute() && u.Day() == t.Day() {
			return u
		}
	}
	return t
}
