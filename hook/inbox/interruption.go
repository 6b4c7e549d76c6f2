package inbox

import "time"

// Interruption tells Recover about the session that is gone.
type Interruption struct {
	Policy OrphanPolicy
	// MaxAttempts is how many counted attempts an entry gets; when the last one is
	// interrupted, the entry is filed as poison. 0 means 5.
	MaxAttempts int
	// Counts is false when the client never really ran the entry (API failure,
	// dialog, start-up): then the repeat does not use up an attempt.
	Counts bool
	// Fatal says that the session died while it worked on the entry Delivery. Then an
	// interruption that Counts uses up an attempt of that entry even if nothing proves
	// that it arrived: it may be what the client dies of.
	Fatal bool
	// Arrived, when not nil, looks for evidence (in the transcript) that an entry
	// got further than its record says: that an offered one was taken after all,
	// and that a tool was called. In doubt it does not return Seen.
	Arrived func(InFlight) Arrival
	// Finished, when not nil, returns the acknowledgement of an entry whose turn is
	// demonstrably over; nil for any other.
	Finished func(InFlight) *Acknowledgement
	// Begins, when not nil, reports whether a session can be started with an entry as its
	// first prompt; nil: with none.
	Begins func(InFlight) bool
	// Checked, when not nil, reports whether an entry is done only when a check has
	// passed, whatever its record says.
	Checked func(InFlight) bool
	// Judged, when not nil, reports whether a check has answered for an entry that its
	// record calls unproven; else it counts as started.
	Judged func(InFlight) bool
	// Ends, when not nil, is called for an entry that was set aside once, before the last
	// trace in the queue's files goes that it has ended: from then on it is not put back.
	Ends func(delivery string) error
	// Unwatched says that no hook reported the session's tools: any may have run.
	Unwatched bool
	// Untaken says that an entry that is still offered demonstrably reached no
	// session.
	Untaken bool
	// Refused says that the service ended the session: if no tool ran, nothing was
	// worked on.
	Refused bool
	// Passes, when not nil, reports whether a kind of API failure is temporary. An
	// entry whose turn was ended by such a failure is not an orphan, and stays in
	// flight.
	Passes func(kind string) bool
	// Poison says that the entry has used all its chances: it is filed, unless its
	// policy decides otherwise.
	Poison bool
	// OverBudget is the delivery id of an entry that has cost more than one may: it is
	// filed, whatever the policy. Any other entry is left alone.
	OverBudget string
	// Delivery is the delivery id of what the session had in flight at its end, as far
	// as somebody knows who does not read that from the queue, or "".
	Delivery string
	// Cause is how the session ended, for dead letters.
	Cause string
	// Cancel, when not nil, is what a person has asked for whose wish could not be
	// recorded (Held.Cancel).
	Cancel *Cancellation
	Now    time.Time
}

// limit is how many interruptions of an entry are counted before it is filed.
func (i Interruption) limit() int {
	if i.MaxAttempts <= 0 {
		return defaultAttempts
	}
	return i.MaxAttempts
}

// usesUp reports whether the interruption uses up an attempt of an entry, whose record
// has the state that counts.
func (i Interruption) usesUp(f *flight) bool {
	return i.Counts && (f.State.rank() >= Taken.rank() || i.Fatal && f.DeliveryID == i.Delivery)
}

// Cancellation is a person's wish that an entry in flight is not worked on any
// more.
type Cancellation struct {
	// Delivery is its delivery id; any other entry is left alone.
	Delivery string `json:"delivery"`
	// Again has it queued once more, at the end of the queue and as if it were new.
	Again bool `json:"again,omitempty"`
}

// mark is the word for it in an entry's record.
func (c Cancellation) mark() Cancel {
	if c.Again {
		return CancelAgain
	}
	return CancelForGood
}

// Cancel is what a person wants of an entry in flight once its session is gone;
// "" for nothing.
type Cancel string

// A cancelled entry becomes a dead letter, or is queued again as if it were new.
const (
	CancelForGood Cancel = "for-good"
	CancelAgain   Cancel = "again"
)

// Outcome says what Recover did. The list is closed.
type Outcome string

// The outcomes of Recover.
const (
	NothingToRecover   Outcome = "nothing-to-recover"
	StaleOrphanDeleted Outcome = "stale-orphan-deleted" // it had been acknowledged already
	Requeued           Outcome = "requeued"             // it is first in the queue again
	DeadLettered       Outcome = "dead-lettered"
	DroppedOrphan      Outcome = "dropped"
	Kept               Outcome = "kept"         // it stays in flight, for a session that goes on with it
	Repaired           Outcome = "repaired"     // a corrupt file was set aside and rebuilt
	CancelledOrphan    Outcome = "cancelled"    // a person has cancelled it: a dead letter
	QueuedAgain        Outcome = "queued-again" // the same, and it stands at the end of the queue
	LeftChecking       Outcome = "checking"     // it stays in flight until its check is over
	LeftUnproven       Outcome = "unproven"     // it stays in flight, for its next iteration
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{NothingToRecover, StaleOrphanDeleted, Requeued, DeadLettered, DroppedOrphan, Kept, Repaired, CancelledOrphan, QueuedAgain, LeftChecking, LeftUnproven}
}
