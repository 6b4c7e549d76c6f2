package main

import (
	"fmt"
	"math"
	"time"

	"github.com/alecthomas/kong"

	"heartbeat/sources"
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
	if d, err := sources.ParseLength(text); err == nil {
		return now.Add(-d), nil
	}
	at, err := sources.ParseMoment(text)
	if err != nil {
		return time.Time{}, fmt.Errorf(`%q is neither a duration like 90m, 24h, 90d or 2w nor a time like 09:30, 2026-03-01, "2026-03-01 09:30" or 2026-03-01T09:30Z`, text)
	}
	return at.Last(now, now.Location()), nil
}
