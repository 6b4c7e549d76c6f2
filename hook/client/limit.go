package client

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Refusal is what the client's record says of a request that the API refused for
// good.
type Refusal struct {
	Status int    `json:"status,omitempty"` // of HTTP
	Kind   string `json:"kind,omitempty"`
	Text   string `json:"text,omitempty"` // for people
}

// refused: {"type":"assistant","isApiErrorMessage":true,"apiErrorStatus":429,
// "error":"rate_limit","message":{…}} (2.1.329). A reply that only quotes the words
// has no such mark.
func refused(line []byte) *Refusal {
	if !bytes.Contains(line, []byte(`"isApiErrorMessage"`)) {
		return nil
	}
	var r struct {
		Marked bool   `json:"isApiErrorMessage"`
		Status int    `json:"apiErrorStatus"`
		Kind   string `json:"error"`
	}
	if json.Unmarshal(line, &r) != nil || !r.Marked {
		return nil
	}
	words := said("assistant", line)
	if words == nil {
		return nil
	}
	return &Refusal{Status: r.Status, Kind: r.Kind, Text: strings.Join(words, "\n")}
}

// LimitWords is what the client's words for people say of a limit. The time is that
// of a clock in a zone, without its seconds.
type LimitWords struct {
	Hour, Minute int
	Month        time.Month // 0: the next time that the clock shows it
	Day, Year    int        // Year 0: the next one
	Zone         string     // as the system's database names it; "": the client's own
	// Window is how long the limit is; 0: that is not said.
	Window time.Duration
	// Model is true where the limit is that of one model.
	Model bool
}

// limitOf reads "You've hit your limit · resets 10pm (UTC)", "You've hit your weekly
// limit · resets Nov 25, 10:30pm (Europe/Rome) · progress saved" (2.1.329; a day
// stands there when it is more than 24 hours away, the year when it is another one),
// and "limit reached. Your limit will reset at 3pm (America/New_York)" of its
// predecessors.
func limitOf(text string) (l LimitWords, ok bool) {
	rest := ""
	for _, word := range []string{"resets ", "reset at "} {
		if at := strings.LastIndex(text, word); at >= 0 {
			rest = strings.TrimPrefix(text[at+len(word):], "at ")
			break
		}
	}
	if rest == "" {
		return l, false
	}
	l.Window, l.Model = limitNamed(text)
	if open := strings.Index(rest, "("); open >= 0 {
		if end := strings.Index(rest[open:], ")"); end > 0 {
			l.Zone = strings.TrimSpace(rest[open+1 : open+end])
		}
		rest = rest[:open]
	}
	rest, _, _ = strings.Cut(rest, "·")
	for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", " at ", " ").Replace(rest)) {
		switch n, err := strconv.Atoi(word); {
		case l.Month == 0 && months[low3(word)] != 0:
			l.Month = months[low3(word)]
		case err == nil && l.Month != 0 && l.Day == 0 && n >= 1 && n <= 31:
			l.Day = n
		case err == nil && l.Day != 0 && l.Year == 0 && n >= 2000 && n < 3000:
			l.Year = n
		default:
			l.Hour, l.Minute, ok = clockOf(word)
			return l, ok && (l.Month == 0) == (l.Day == 0)
		}
	}
	return l, false
}

// limitNamed tells the limit by the name that the client has for it.
func limitNamed(text string) (window time.Duration, model bool) {
	for _, n := range []struct {
		name   string
		window time.Duration
		model  bool
	}{
		{"5-hour limit", FiveHours, false},
		{"session limit", FiveHours, false},
		{"weekly limit", SevenDays, false},
		{"Opus limit", SevenDays, true},
		{"Sonnet limit", SevenDays, true},
		{"Fable limit", SevenDays, true},
	} {
		if strings.Contains(text, n.name) {
			return n.window, n.model
		}
	}
	return 0, false
}

var months = map[string]time.Month{
	"jan": time.January, "feb": time.February, "mar": time.March, "apr": time.April, "may": time.May, "jun": time.June,
	"jul": time.July, "aug": time.August, "sep": time.September, "oct": time.October, "nov": time.November, "dec": time.December,
}

func low3(word string) string {
	if len(word) != 3 {
		return ""
	}
	return strings.ToLower(word)
}

// clockOf reads 10pm and 10:30pm.
func clockOf(word string) (hour, minute int, ok bool) {
	word = strings.TrimRight(strings.ToLower(word), ".")
	clock, pm := strings.CutSuffix(word, "pm")
	if !pm {
		if clock, ok = strings.CutSuffix(word, "am"); !ok {
			return 0, 0, false
		}
	}
	h, m, has := strings.Cut(clock, ":")
	hour, err := strconv.Atoi(h)
	if err != nil || hour < 1 || hour > 12 {
		return 0, 0, false
	}
	if has {
		if minute, err = strconv.Atoi(m); err != nil || len(m) != 2 || minute < 0 || minute > 59 {
			return 0, 0, false
		}
	}
	if hour %= 12; pm {
		hour += 12
	}
	return hour, minute, true
}
