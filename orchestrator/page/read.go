package page

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// Fleet is what `heartbeat status -o json` says of a fleet, and what it leaves out.
type Fleet struct {
	status.Fleet
	Summary  string           `json:"summary"`
	Troubles []status.Trouble `json:"troubles"`
	// Group is the group of each agent that has one.
	Group map[string]string `json:"-"`
	// Budgets are what may be spent and what is, Limits how far the accounts' limits
	// are used.
	Budgets []Budget `json:"-"`
	Limits  []Limit  `json:"-"`
}

// Budget is what somebody may spend in a period, and has spent.
type Budget struct {
	Of     string // NAME, "group NAME", "the fleet"
	Period string // hour, day
	What   string // turns, tokens, cost
	Spent  float64
	Most   float64
	Price  string // of what is spent, where it is a cost: a part of it may be unknown
}

// When is the period, for people.
func (b Budget) When() string {
	if b.Period == "hour" {
		return "this hour"
	}
	return "today"
}

// High is from where on little is left.
func (b Budget) High() float64 { return 0.9 * b.Most }

// Gone reports whether nothing is left.
func (b Budget) Gone() bool { return b.Spent >= b.Most }

// Said is what is spent of what may be.
func (b Budget) Said() string {
	if b.What == "cost" {
		return b.Price + " of " + usage.Dollars(b.Most)
	}
	return usage.Tokens(int64(b.Spent)) + " of " + usage.Tokens(int64(b.Most)) + " " + b.What
}

// Limit is how far a usage limit of an account is used.
type Limit struct {
	Account string
	Window  string // "5 hours", "7 days"
	Used    float64
	Resets  time.Time
	// Parked is true while the account's agents wait for the reset.
	Parked bool
	Agents int
}

// Read returns what the page shows. Its errors are shown.
type Read interface {
	Fleet(ctx context.Context) (Fleet, error)
	// Agent reads one agent alone; ErrNotFound: there is none of this name.
	Agent(ctx context.Context, name string) (status.Agent, []status.Trouble, error)
}

// Act does what a person asks for, as the command of the same name does it.
type Act interface {
	Pause(length time.Duration, agent string) error
	Resume(agent string) error
	Restart(now bool, agent string) error
	// Cancel ends a turn, and returns what became of its entry; again: it is queued again.
	Cancel(ctx context.Context, entry string, again bool, agent string) (string, error)
	Trigger(ctx context.Context, agent, trigger string) (string, error)
	// Send queues a prompt under an id, once, and returns what came of it.
	Send(ctx context.Context, agent, prompt, id string) (string, error)
	Drop(ctx context.Context, agent, id string) error
	Retry(ctx context.Context, agent, id string) error
	// RetryAll queues all dead letters of an agent again, and returns how many.
	RetryAll(ctx context.Context, agent string) (int, error)
	Purge(ctx context.Context, agent, id string) error
	// Continue tells a queue that asks where to continue, and returns what comes of it.
	Continue(ctx context.Context, agent, answer string) (string, error)
	// Allow lets an agent use what it was refused in its last session, and returns from when on.
	Allow(ctx context.Context, agent, rule string) (string, error)
	Reload() (string, error)
}

// SortLimits sorts limits: those of one account together, and what is used most first.
func SortLimits(all []Limit) []Limit {
	slices.SortFunc(all, func(x, y Limit) int {
		return cmp.Or(strings.Compare(x.Account, y.Account), cmp.Compare(y.Used, x.Used), strings.Compare(x.Window, y.Window))
	})
	return all
}
