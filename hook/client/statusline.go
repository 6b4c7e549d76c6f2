package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// StatusLine is the part of what the client tells its status line that we use: what
// the conversation has cost, how full it is, and how far the account's limits are used.
// The client writes it to the stdin of a command, with each answer of the model. A
// figure that is missing or impossible is zero.
//
// An agent can also run that command: the figures are within limits, but may be false.
type StatusLine struct {
	SessionID  string `json:"session_id"`
	Transcript string `json:"transcript,omitempty"` // its path
	Version    string `json:"version,omitempty"`    // of the client
	Model      string `json:"model,omitempty"`      // by its id
	// Cost is the client's own figure of what the conversation has cost so far, in
	// US dollars at list price. A resumed conversation continues it.
	Cost float64 `json:"cost"`
	// Context is the conversation's part of the model's context window.
	Context ContextWindow `json:"context,omitzero"`
	// Limits are those of a subscription: with a key, and before the first answer,
	// nothing is told about them.
	Limits Limits `json:"limits,omitzero"`
}

// ContextWindow says how much of a model's context window a conversation fills.
type ContextWindow struct {
	Size int64 `json:"size,omitempty"` // of the window, in tokens
	// Used is in percent, 0 to 100, as the client rounds it.
	Used float64 `json:"used"`
}

// Limits are the limits of a subscription.
type Limits struct {
	FiveHour Limit `json:"five_hour,omitzero"`
	SevenDay Limit `json:"seven_day,omitzero"`
}

// IsZero reports whether nothing was told.
func (l Limits) IsZero() bool { return l == Limits{} }

// Limit says how far one limit is used. The zero value: nothing was told.
type Limit struct {
	// Used is in percent; from 100 on the service refuses.
	Used float64 `json:"used"`
	// Resets is when its window ends, at most the window's length from now; zero: it
	// was not told, or impossible.
	Resets time.Time `json:"resets,omitzero"`
}

// The lengths of the windows.
const (
	FiveHours = 5 * time.Hour
	SevenDays = 7 * 24 * time.Hour
)

// The largest figures that are accepted.
const (
	maxCost    = 1e6 // dollars, of one conversation
	maxPercent = 1000
	maxWindow  = 1e9 // tokens
)

// ErrNoStatusLine means that a text is not what a client writes to its status line.
var ErrNoStatusLine = errors.New("it is not a status line's")

// readStatusLine: the fields of 2.1.329. resets_at is in seconds since 1970;
// rate_limits is there with an OAuth token only, context_window.current_usage null
// before the first answer.
func readStatusLine(data []byte, now time.Time) (StatusLine, error) {
	var told struct {
		SessionID  string `json:"session_id"`
		Transcript string `json:"transcript_path"`
		Version    string `json:"version"`
		Model      struct {
			ID string `json:"id"`
		} `json:"model"`
		Cost struct {
			Total float64 `json:"total_cost_usd"`
		} `json:"cost"`
		Context struct {
			Size float64 `json:"context_window_size"`
			Used float64 `json:"used_percentage"`
		} `json:"context_window"`
		RateLimits struct {
			FiveHour toldLimit `json:"five_hour"`
			SevenDay toldLimit `json:"seven_day"`
		} `json:"rate_limits"`
	}
	err := json.Unmarshal(data, &told)
	if _, odd := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !odd { // a figure of another type counts as missing
		return StatusLine{}, fmt.Errorf("%w: %w", ErrNoStatusLine, err)
	}
	if told.SessionID == "" {
		return StatusLine{}, ErrNoStatusLine
	}
	return StatusLine{
		SessionID: told.SessionID, Transcript: told.Transcript, Version: told.Version, Model: told.Model.ID,
		Cost:    within(told.Cost.Total, maxCost),
		Context: ContextWindow{Size: int64(within(told.Context.Size, maxWindow)), Used: within(told.Context.Used, 100)},
		Limits: Limits{
			FiveHour: told.RateLimits.FiveHour.limit(FiveHours, now),
			SevenDay: told.RateLimits.SevenDay.limit(SevenDays, now),
		},
	}, nil
}

type toldLimit struct {
	Used   float64 `json:"used_percentage"`
	Resets float64 `json:"resets_at"`
}

// limit: a window cannot end later than its length from now, plus a minute because
// clocks differ.
func (t toldLimit) limit(window time.Duration, now time.Time) Limit {
	l := Limit{Used: within(t.Used, maxPercent)}
	if ahead := t.Resets - float64(now.Unix()); ahead > 0 && ahead <= (window+time.Minute).Seconds() {
		l.Resets = time.Unix(int64(t.Resets), 0)
	}
	return l
}

// within returns a figure from 0 to most, otherwise 0.
func within(figure, most float64) float64 {
	if math.IsNaN(figure) || figure < 0 || figure > most {
		return 0
	}
	return figure
}
