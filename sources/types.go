package sources

import (
	"context"
	"time"
)

// Missed says what happens with the fires of a schedule that fell due while
// nobody was there.
type Missed string

// The rules for missed fires.
const (
	MissedSkip Missed = "skip"
	MissedOnce Missed = "once" // one fire for all of them
	MissedAll  Missed = "all"  // each, at most 10
)

// Split says how a poll's output becomes prompts.
type Split string

// The splits.
const (
	SplitWhole Split = "whole" // the output, trimmed
	SplitLines Split = "lines" // one prompt for each non-blank line
	SplitJSON  Split = "json"  // a JSON value each, or one array of them
)

// Prompt is one fire of a trigger.
type Prompt struct {
	// Label makes the fire unique within its trigger: the local calendar
	// minute of a cron fire, path and content hash of a watched file,
	// a content hash of a poll's output. Firing the same label again is the same fire.
	Label string
	Text  string
	At    time.Time
}

// Emit takes a fire. When it returns nil the prompt is durably queued, and
// the source may record that it fired.
type Emit func(ctx context.Context, p Prompt) error

// Schedule is a parsed cron expression with its time zone.
// Each fixed local time fires once a day over every change of the clock (ISC
// cron's rules: in a gap at its end, in an overlap once); wildcard hours
// follow real time.
type Schedule struct {
	spec string
	loc  *time.Location
}

// ParseSchedule parses five fields, names, and the @hourly… words. It refuses
// what never fires.
func ParseSchedule(spec string, loc *time.Location) (Schedule, error) { panic("todo") }

// String returns the expression as it was written.
func (s Schedule) String() string { return s.spec }

// Location returns the time zone.
func (s Schedule) Location() *time.Location { return s.loc }

// Next returns the first fire after t, or the zero time.
func (s Schedule) Next(t time.Time) time.Time { panic("todo") }

// Label names the fire at t: two fires with one label are the same.
func (s Schedule) Label(t time.Time) string { panic("todo") }
