package sources

import (
	"context"
	"errors"
	"time"
)

// Missed says what happens to the fires of a schedule that fell due while heartbeat
// was not running.
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

// Condition is what a request has to say to fire a webhook: one of Values, at a
// header or a field of its body.
type Condition struct {
	Header string   // its canonical name, or ""
	Field  []string // the path of a field; * is any element of a list
	Values []string // as text: a number as it is written
}

// Prompt is one fire of a trigger.
type Prompt struct {
	// Label makes the fire unique within its trigger: the local calendar minute (or
	// second) of a cron fire, the path and content hash of a watched file, or a
	// content hash of a poll's output. Firing the same label again is the same
	// fire.
	Label string
	Text  string
	At    time.Time
	// Lacking are the fields and headers that the template names and that were not
	// there, as people write them.
	Lacking []string
	// Due is when the schedule wanted the prompt to be queued: At plus the
	// trigger's Delay. It is zero for fires without a set time.
	Due time.Time
}

// Emit accepts a fire. When it returns nil, the prompt is durably queued, and the
// source may record that it fired. An error means that it is not queued: the source
// keeps the fire and offers it again. Emit must be safe for calls from several
// goroutines; a source never makes two calls for one trigger at the same time.
//
// ErrDeclined is neither success nor failure: a gate does not want the fire now. A
// source that can find the same again (a poll) forgets the fire, others drop it.
type Emit func(ctx context.Context, p Prompt) error

// ErrDeclined is returned by an Emit when a gate declined the fire.
var ErrDeclined = errors.New("the gate said no")

// Seen is what a watch trigger has fired for: the state of each matching file
// by its path, relative to the agent's directory, with slashes; a path with
// control characters is quoted as a Go string. It can be kept as JSON.
type Seen map[string]Print

// Print is the state of a file.
type Print struct {
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime"`           // Unix nanoseconds
	Changed int64  `json:"ctime,omitempty"` // of the inode, Unix nanoseconds, where the system tells
	Sum     string `json:"sha256"`          // of the content; of files over 64 MiB: of that much, size and ModTime
}
