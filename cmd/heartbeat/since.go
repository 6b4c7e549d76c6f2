package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// since is a time from which on something is shown: a duration ago, or a time of
// the day or of the calendar, in local time. The zero value is the beginning.
type since struct{ time.Time }

// most is how many of what there is since then are shown, the newest: as many as somebody
// asks for, else all since a time that is given, else so many.
func (s since) most(asked *int, otherwise int) int {
	switch {
	case asked != nil:
		return *asked
	case !s.IsZero():
		return math.MaxInt / 4
	}
	return otherwise
}

// sinceForms are how a time may be written.
var sinceForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// Decode implements kong's MapperValue.
func (s *since) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	at, err := parseSince(text, time.Now())
	s.Time = at
	return err
}

func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, form := range sinceForms {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if at, err := time.ParseInLocation("15:04", text, now.Location()); err == nil {
		y, m, d := now.Date()
		return time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, now.Location()), nil
	}
	return time.Time{}, fmt.Errorf(`%q is neither a duration like 90m, 24h or 90d nor a time like 09:30, 2026-03-01 or "2026-03-01 09:30"`, text)
}
