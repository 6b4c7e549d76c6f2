package queue

import "time"

// OrphanPolicy says what happens to a started entry whose session was interrupted.
type OrphanPolicy string

// The orphan policies of heartbeat-rs.
const (
	RetryOrphan      OrphanPolicy = "retry"      // hand it over again
	DeadLetterOrphan OrphanPolicy = "deadletter" // give it up, never hand it over again
	DropOrphan       OrphanPolicy = "drop"       // forget it
)

// givesUp reports whether the policy gives up an entry for which a tool may have run. An unknown
// policy does.
func (p OrphanPolicy) givesUp() bool { return p != RetryOrphan && p != DropOrphan }

// Arrival is what a search for evidence found about an entry.
type Arrival int

// The possible arrivals.
const (
	Unknown Arrival = iota // there is nothing to look into
	Unseen                 // it is not there; a client that was killed may not have written it
	Seen                   // the session got it
	Worked                 // and a tool was called for it
)

// Interruption is what is known about an entry whose session is gone.
type Interruption struct {
	Policy OrphanPolicy
	// MaxAttempts is how many counted attempts an entry gets; when the last one is interrupted,
	// the entry is poison. 0 means 5.
	MaxAttempts int
	// Counts is false when the client never really ran the entry (API failure, dialog, start-up):
	// then the repeat uses up no attempt. Fatal says that the session died while it worked on it:
	// then an interruption that Counts uses up an attempt even if nothing proves that the entry
	// arrived, since it may be what the client dies of.
	Counts, Fatal bool
	// Arrived is what the transcript shows of the entry. In doubt it is not Seen.
	Arrived Arrival
	// Finished is true if the entry's turn is demonstrably over.
	Finished bool
	// Begins is true if a session can be started with the entry as its first prompt.
	Begins bool
	// Unwatched says that no hook reported the session's tools: any may have run.
	Unwatched bool
	// Untaken says that an entry that is still offered demonstrably reached no session.
	Untaken bool
	// Refused says that the service ended the session: if no tool ran, nothing was worked on.
	Refused bool
	// Passes is true if the entry's Failure is a temporary one.
	Passes bool
	// Poison says that the entry has used all its chances: it is given up, unless its policy
	// decides otherwise. OverBudget says that it has cost more than one may.
	Poison, OverBudget bool
	// Cause is how the session ended, for people.
	Cause string
	Now   time.Time
}

// defaultAttempts is the default of MaxAttempts.
const defaultAttempts = 5

func (i Interruption) limit() int {
	if i.MaxAttempts <= 0 {
		return defaultAttempts
	}
	return i.MaxAttempts
}

// Outcome says what Recover decided. The list is closed; the words are heartbeat-rs's where it
// has one.
type Outcome string

// The outcomes.
const (
	NothingToRecover   Outcome = "nothing-to-recover"
	StaleOrphanDeleted Outcome = "stale-orphan-deleted" // it was done: its turn was over
	Requeued           Outcome = "requeued"             // it is first in the queue again
	DeadLettered       Outcome = "dead-lettered"
	DroppedOrphan      Outcome = "dropped"
	Kept               Outcome = "kept"         // it stays in flight, for a session that goes on with it
	CancelledOrphan    Outcome = "cancelled"    // a person has cancelled it: it is dead
	QueuedAgain        Outcome = "queued-again" // the same, and it is queued as if it were new
	LeftChecking       Outcome = "checking"     // it stays in flight until its check is over
	LeftUnproven       Outcome = "unproven"     // it stays in flight, for its next iteration
)

// Recover decides what becomes of an entry in flight whose session is gone. The first of these
// that applies decides:
//
//  1. Its turn is demonstrably over: it is done, cancelled or not. One that has to be checked is
//     checked, unless it was cancelled: that a session says it is done proves nothing.
//  2. A person has cancelled it: dead, or queued again as if it were new (place is where). One
//     whose check ends before its session is gone is done if that passes (Judge); if not, the
//     same becomes of it as here.
//     It is over its budget: dead.
//  3. It is checking, or unproven: it stays, and no attempt is used up. If it is unproven
//     because its session was interrupted, 6 to 8 decide by the state that it had then.
//     A temporary failure ended its turn: it stays. Its session has not read the file it was
//     handed over in: queued again, and no attempt is used up, or dead where no session can
//     begin with it.
//  4. The state that counts is determined: the transcript may show more than was recorded, and
//     where no hook reported tools any may have run.
//  5. It is checked, and its session may have done it: it is checked now.
//  6. Started or background, policy drop: dropped; policy deadletter, or one that is not known:
//     dead.
//  7. It has used up its attempts, or the caller gives it up: dead, poison.
//  8. Otherwise it is queued again, in its place.
//
// The entry that is returned has the state that Recover went by until then.
func (e Entry) Recover(i Interruption, place int64) (Entry, Outcome) {
	if !e.State.IsInFlight() {
		return e, NothingToRecover
	}
	switch {
	case i.Finished && e.State.IsInSession() && !e.Checked:
		return e.end(Done, "", "", i.Now), StaleOrphanDeleted
	case e.Cancel != "":
		return e.carryOutCancel(i.Cause, place, i.Now)
	case i.Finished && e.State.IsInSession():
		e, _ = e.Claim(i.Now)
		return e, LeftChecking
	case i.OverBudget:
		return e.end(Dead, OverBudget, i.Cause, i.Now), DeadLettered
	case e.State == Checking:
		return e, LeftChecking
	case e.State == Unproven && e.Interrupted == "":
		return e, LeftUnproven
	case e.State == Unproven: // its interruption was counted before it was checked
		e.State, e.Interrupted = e.Interrupted, ""
		return e.orphan(i, false)
	case e.Failure != "" && i.Passes:
		return e, Kept
	case e.Handover.File != "" && e.Unread:
		if e.Unread = i.Arrived != Seen && i.Arrived != Worked; e.Unread { // else it has read it later
			return e.beginAgain(i)
		}
	}
	untaken := e.weigh(i)
	if i.Counts && (e.State.rank() >= Taken.rank() || i.Fatal) {
		e.Repeats++
	}
	if e.Checked && !i.Poison {
		switch again := e.Iteration > 1; {
		case e.State.rank() >= Started.rank(), e.State == Taken && again: // its session may have done it: that is no repeat if it has
			was := e.State
			e, _ = e.Claim(i.Now)
			e.Interrupted = was
			return e, LeftChecking
		case e.State == Offered && again && e.Repeats < i.limit(): // it reached nobody
			e.State = Unproven
			return e, LeftUnproven
		}
	}
	return e.orphan(i, untaken)
}

// carryOutCancel ends a cancelled entry, or queues it at a place as if it were new.
func (e Entry) carryOutCancel(cause string, place int64, now time.Time) (Entry, Outcome) {
	again := e.Cancel == CancelAgain
	if e = e.end(Dead, Cancelled, cause, now); again {
		e, _ = e.Retry(place)
		return e, QueuedAgain
	}
	return e, CancelledOrphan
}

// weigh determines the state that counts, and reports whether the entry demonstrably reached no
// session.
func (e *Entry) weigh(i Interruption) (untaken bool) {
	arrived := i.Arrived
	if e.State.rank() > Taken.rank() {
		arrived = Unknown
	}
	switch {
	case arrived == Worked:
		e.State = Started
	case arrived == Seen && e.State == Offered:
		e.State = Taken
	}
	untaken = e.State == Offered && i.Untaken
	switch {
	case !i.Unwatched || untaken:
	case e.State == Taken, e.State == Offered && (arrived == Unknown || i.Policy.givesUp()):
		e.State = Started // a tool may have run for it without anything telling us
	}
	return untaken
}

// orphan decides by the entry's state, by what its interruptions have used up and by the policy.
func (e Entry) orphan(i Interruption, untaken bool) (Entry, Outcome) {
	started := e.State.rank() >= Started.rank()
	switch {
	case started && i.Policy == DropOrphan:
		return e.end(Dropped, "", i.Cause, i.Now), DroppedOrphan
	case started && i.Policy.givesUp():
		return e.end(Dead, Interrupted, i.Cause, i.Now), DeadLettered
	case e.Repeats >= i.limit() || i.Poison:
		return e.end(Dead, Poison, i.Cause, i.Now), DeadLettered
	}
	e.Untouched = !e.IsRepeat() && (untaken || i.Refused && e.State.rank() <= Taken.rank())
	if e.Lane == Returning {
		e.Attempt++ // Offer counts none
	}
	return e.requeue(), Requeued
}

// requeue puts an entry in flight back into its place.
func (e Entry) requeue() Entry {
	e.State, e.Failure, e.Claimed, e.Interrupted, e.Cancel = Queued, "", time.Time{}, "", ""
	return e
}

// beginAgain decides what becomes of an entry whose session has not read the file in which it was
// handed over: the next session begins with it. Where none can, it is given up at once: by a file
// it would not be read the next time either.
func (e Entry) beginAgain(i Interruption) (Entry, Outcome) {
	if !i.Begins {
		return e.end(Dead, Unread, i.Cause, i.Now), DeadLettered
	}
	if e.Iteration > 1 {
		e.State, e.Failure = Unproven, ""
		return e, LeftUnproven
	}
	e.Untouched = !e.IsRepeat() && e.State.rank() <= Taken.rank() // otherwise a tool has run, for whatever
	return e.requeue(), Requeued
}
