package inbox

import "context"

// Queue is an opened place. Its methods that change the queue's state
// (everything but Append, AppendBatch, Depth and the readers) must be called with
// the hook lock held; see Lock. A Queue may be used by one goroutine at a time.
type Queue struct {
	place Place
}

// Open opens a queue. The folders must exist; the inbox need not.
func Open(p Place) (*Queue, error) { panic("todo") }

// Close releases what Open took.
func (q *Queue) Close() error { panic("todo") }

// Lock takes the hook lock (.hook-lock, an flock) and returns its release. It
// waits until ctx ends.
func (q *Queue) Lock(ctx context.Context) (unlock func() error, err error) { panic("todo") }

// Letter is what Append writes: always as an envelope on one line.
type Letter struct {
	ID     string // "" for one made up
	Source string // "send" or "AGENT/TRIGGER@LABEL"
	Prompt string // not blank
	// Idempotent refuses, with ErrDuplicate, an ID that was accepted among
	// the last 100,000 or within 7 days.
	Idempotent bool
}

// Append adds an entry. When it returns nil the entry and its folder are on
// disk. It creates the inbox when there is none, takes no hook lock, and is
// safe against other appenders. It returns the entry's id.
func (q *Queue) Append(ctx context.Context, l Letter) (id string, err error) { panic("todo") }

// InFlight returns the entry in flight, or nil. An entry that the cursor has
// passed (acknowledged, the removal was interrupted) is cleaned up and
// reported as nil. A corrupt file is set aside and the entry at the cursor
// counts as offered without proof.
func (q *Queue) InFlight() (*InFlight, error) { panic("todo") }

// Next returns the first complete line at the cursor, skipping blank lines
// and filing torn or oversized ones as dead letters. It checks first that the
// cursor belongs to this inbox (truncated, rotated, replaced, edited). It
// returns ErrEmpty when there is none, and ErrNeedsOperator when it cannot go on.
func (q *Queue) Next() (*Entry, error) { panic("todo") }

// Offer records e as in flight and offered; when it returns nil the record is
// durable and the entry may be handed over. Attempt and Repeats go on from the
// entry's earlier hand-overs. It is an error while another entry is in flight.
func (q *Queue) Offer(e *Entry, o Offering) (*InFlight, error) { panic("todo") }

// Reoffer records the entry in flight as offered anew (no proof came that it
// was taken) and returns it with its prompt.
func (q *Queue) Reoffer(o Offering) (*Entry, *InFlight, error) { panic("todo") }

// Advance records that the entry in flight has reached a state. Going
// backwards is not an error and does nothing. promptID, when not "", is kept.
func (q *Queue) Advance(s State, promptID string) (*InFlight, error) { panic("todo") }

// Acknowledge finishes the entry in flight: outbox record, then cursor, then
// the in-flight record goes. Calling it without one is an error.
func (q *Queue) Acknowledge(a Acknowledgement) (*Delivery, error) { panic("todo") }

// Withdraw takes back an offer that was never handed over (the launch
// failed): the entry is queued again and no attempt is used up.
func (q *Queue) Withdraw() error { panic("todo") }

// Recover deals with the entry in flight after its session is gone. The
// caller holds the hook lock and knows that no session lives.
func (q *Queue) Recover(i Interruption) (Outcome, *InFlight, error) { panic("todo") }

// Depth counts what is queued behind the cursor and not in flight, looking
// at most at limit bytes.
func (q *Queue) Depth(limit int64) (Depth, error) { panic("todo") }
