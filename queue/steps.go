package queue

import (
	"fmt"
	"time"
)

// refuse says that a step cannot be taken.
func (e Entry) refuse(what string, why error) error {
	return fmt.Errorf("cannot %s entry %s, which is %s: %w", what, e.Delivery, e.State, why)
}

// Is reports whether something is about the entry's present hand-over.
func (e Entry) Is(delivery string, handover int64) bool {
	return e.Delivery == delivery && e.Handover.N == handover
}

// Wake makes an entry due whose time has come: it is queued at a place, which is to be behind all
// others of its lane.
func (e Entry) Wake(place int64) (Entry, error) {
	if e.State != Later {
		return e, e.refuse("queue", ErrState)
	}
	e.State, e.Place = Queued, place
	return e, nil
}

// Defer gives another time to an entry that nobody has; zero: at once, at place.
func (e Entry) Defer(until time.Time, place int64) (Entry, error) {
	if e.State != Queued && e.State != Later {
		return e, e.refuse("defer", ErrState)
	}
	e.State, e.NotBefore = Later, until
	if until.IsZero() {
		return e.Wake(place)
	}
	return e, nil
}

// Hasten has an entry handed over before those that are not urgent.
func (e Entry) Hasten() (Entry, error) {
	if e.State != Queued && e.State != Later {
		return e, e.refuse("hasten", ErrState)
	}
	e.Lane = min(e.Lane, Urgent)
	return e, nil
}

// Offer hands over an entry that is queued.
func (e Entry) Offer(to Handover) (Entry, error) {
	if e.State != Queued {
		return e, e.refuse("hand over", ErrState)
	}
	if e.Lane != Returning { // that is its next iteration
		e.Attempt++
	}
	return e.handOver(to), nil
}

// OfferAgain hands over an entry in flight again: there is no proof that it was taken, which is
// its next attempt, or its check has not passed, which is its next iteration. One that a person
// has cancelled is not: Recover ends it.
func (e Entry) OfferAgain(to Handover) (Entry, error) {
	switch {
	case e.Cancel != "":
		return e, e.refuse("hand over again", ErrCancelled)
	case e.State == Offered:
		e.Untouched = false
		e.Attempt++
	case e.State != Unproven || e.Interrupted != "":
		return e, e.refuse("hand over again", ErrState)
	}
	return e.handOver(to), nil
}

func (e Entry) handOver(to Handover) Entry {
	to.N = e.Handover.N + 1
	e.State, e.Handover, e.Failure = Offered, to, ""
	if e.Checked {
		e.Iteration = max(1, e.Iteration)
	}
	if to.File != "" {
		e.Unread = false // of this file it is not known yet
	}
	return e
}

// Withdraw takes back a hand-over that demonstrably reached nobody. It uses up no attempt. What a
// person wanted of that hand-over is over with it.
func (e Entry) Withdraw() (Entry, error) {
	if e.State != Offered {
		return e, e.refuse("withdraw", ErrState)
	}
	switch {
	case e.Lane == Returning:
		e.State = Queued
	case e.Iteration > 1:
		e.State = Unproven
	default:
		e.State = Queued
		e.Attempt--
	}
	e.Cancel = ""
	return e, nil
}

// PlaceIn records the file in which an entry was handed over, "" for none, and from where on the
// transcript would show it.
func (e Entry) PlaceIn(file string, offset int64) (Entry, error) {
	if e.State != Offered {
		return e, e.refuse("place", ErrState)
	}
	e.Handover.File, e.Handover.Offset = file, offset
	if file != "" {
		e.Unread = false // of this file it is not known yet
	}
	return e, nil
}

// Advance records that a session has come to a state with the entry, of those from offered to
// background. Going back changes nothing. A promptID that is not "" is kept.
func (e Entry) Advance(to State, promptID string) (Entry, error) {
	if !to.IsInSession() || !e.State.IsInFlight() {
		return e, e.refuse("advance to "+string(to), ErrState)
	}
	if to.rank() > e.State.rank() {
		e.State = to
	}
	if promptID != "" {
		e.Handover.PromptID = promptID
	}
	return e, nil
}

// Fail records that an API failure ended the entry's turn.
func (e Entry) Fail(kind string) (Entry, error) {
	if !e.State.IsInFlight() {
		return e, e.refuse("record a failure of", ErrState)
	}
	e.Failure = kind
	return e, nil
}

// MarkUnread records that the session has not read the file in which the entry was handed over.
func (e Entry) MarkUnread() (Entry, error) {
	if !e.State.IsInSession() {
		return e, e.refuse("record that nobody has read", ErrState)
	}
	e.Unread = true
	return e, nil
}

// Rebind gives an entry whose turn a failure ended to another session, which continues its
// conversation. State and attempt stay. One that a person has cancelled is not given.
func (e Entry) Rebind(to Handover) (Entry, error) {
	switch {
	case !e.State.IsInFlight() || e.Failure == "":
		return e, e.refuse("go on with", ErrState)
	case e.Cancel != "":
		return e, e.refuse("go on with", ErrCancelled)
	}
	to.N, to.Via, to.File, to.Unmarked = e.Handover.N+1, ViaResume, e.Handover.File, e.Handover.Unmarked
	e.Handover = to
	return e, nil
}

// GoOn records that a session demonstrably continues an entry that a failure had interrupted.
func (e Entry) GoOn(promptID string) (Entry, error) {
	if !e.State.IsInFlight() {
		return e, e.refuse("go on with", ErrState)
	}
	e.Failure, e.Handover.PromptID = "", promptID
	return e, nil
}

// Acknowledge ends an entry whose turn is over.
func (e Entry) Acknowledge(now time.Time) (Entry, error) {
	switch {
	case !e.State.IsInSession():
		return e, e.refuse("acknowledge", ErrState)
	case e.Checked:
		return e, e.refuse("acknowledge", ErrUnproven)
	}
	return e.end(Done, "", "", now), nil
}

func (e Entry) end(as State, why Reason, cause string, now time.Time) Entry {
	e.State, e.Reason, e.Cause, e.Ended = as, why, cause, now
	e.Claimed, e.Interrupted, e.Failure, e.Cancel, e.Suspended, e.Conversation = time.Time{}, "", "", "", time.Time{}, ""
	return e
}

// Claim records that a session claims to be done with an entry, whose work is checked from then
// on: only Judge ends it. What is recorded already stays.
func (e Entry) Claim(now time.Time) (Entry, error) {
	switch {
	case e.State == Checking, e.State == Unproven:
		return e, nil
	case !e.State.IsInSession():
		return e, e.refuse("check", ErrState)
	}
	e.State, e.Claimed, e.Failure, e.Interrupted = Checking, now, "", ""
	e.Checked, e.Iteration = true, max(1, e.Iteration)
	e.Check++
	return e, nil
}

// VoidCheck records that a session works on an entry again although nobody has handed it over
// again: what is being checked is not what the session leaves. The next claim asks for another
// check, of the same iteration. If nothing is being checked, nothing changes.
func (e Entry) VoidCheck() Entry {
	if e.State == Checking {
		e.State, e.Claimed, e.Interrupted = Started, time.Time{}, ""
		e.Check++
	}
	return e
}

// Verdict says what a check has found.
type Verdict struct {
	Check  int // Proving.Check
	Passed bool
	// GiveUp, if not "" and not Passed, makes the entry dead for this reason. Otherwise it is to
	// be handed over again.
	GiveUp Reason
	Cause  string
	Most   int // how many iterations there may be; 0: any number
	// Place is where an entry is queued again that a person has cancelled so.
	Place int64
}

// Judge ends an entry by what a check has found, or has it handed over again: one in flight by
// its session or the next one, one that was suspended before all that is queued. One that a
// person has cancelled is not handed over again: it ends as Recover has it end.
func (e Entry) Judge(v Verdict, now time.Time) (Entry, error) {
	switch {
	case e.State != Checking && e.State != Suspended:
		return e, e.refuse("judge", ErrStale)
	case e.Check != v.Check:
		return e, e.refuse(fmt.Sprintf("apply the verdict of check %d to", v.Check), ErrStale)
	}
	e.Most = max(0, v.Most)
	switch {
	case v.Passed:
		return e.end(Done, "", "", now), nil
	case e.Cancel != "":
		e, _ = e.carryOutCancel(v.Cause, v.Place, now)
		return e, nil
	case v.GiveUp != "":
		return e.end(Dead, v.GiveUp, v.Cause, now), nil
	case e.State == Suspended:
		e.State, e.Lane, e.Place, e.Suspended = Queued, Returning, now.UnixMilli(), time.Time{}
	default:
		e.State = Unproven
	}
	e.Claimed = time.Time{}
	e.Iteration++
	return e, nil
}

// MostSuspended is how many entries of a queue may be suspended.
const MostSuspended = 10

// Suspend takes an entry whose check has passed out of the queue's order until a person answers.
// conversation is the client's in which it was worked on, or "".
func (e Entry) Suspend(check int, conversation string, now time.Time) (Entry, error) {
	if e.State != Checking || e.Check != check {
		return e, e.refuse("suspend", ErrStale)
	}
	e.State, e.Suspended, e.Conversation, e.Failure = Suspended, now, conversation, ""
	return e, nil
}

// Cancel is what a person wants of an entry in flight once its session is gone; "" for nothing. It
// is about the present hand-over alone.
type Cancel string

// A cancelled entry is dead, or is queued again as if it were new.
const (
	CancelForGood Cancel = "for-good"
	CancelAgain   Cancel = "again"
)

// MarkCancelled records what a person wants of an entry in flight: Recover carries it out.
func (e Entry) MarkCancelled(as Cancel) (Entry, error) {
	if !e.State.IsInFlight() {
		return e, e.refuse("cancel", ErrState)
	}
	e.Cancel = as
	return e, nil
}

// Drop gives up an entry that no session has, because a person says so.
func (e Entry) Drop(now time.Time) (Entry, error) {
	if e.State != Queued && e.State != Later && e.State != Suspended {
		return e, e.refuse("drop", ErrState)
	}
	return e.end(Dead, DropByHand, "", now), nil
}

// Retry queues a dead entry again as if it were new, at a place, which is to be behind all others
// of its lane. One that no line can be made of stays dead; that the text of another one is not
// here, as of some that are lost, its caller finds.
func (e Entry) Retry(place int64) (Entry, error) {
	if e.State != Dead || e.Reason == Torn || e.Reason == TooLarge {
		return e, e.refuse("retry", ErrState)
	}
	e.State, e.Place, e.Tries, e.NotBefore = Queued, place, Tries{}, time.Time{}
	if e.Lane == Returning {
		e.Lane = Normal
	}
	e.Proving = Proving{Checked: e.Checked, Check: e.Check}
	e.Ended, e.Reason, e.Cause = time.Time{}, "", ""
	return e, nil
}

// EndAs ends an entry as it has ended where more is known than its row tells, because the store is
// older: it is done, or dead for a reason. What is done, or was dropped, stays that.
func (e Entry) EndAs(why Reason, cause string, at time.Time) (Entry, error) {
	switch {
	case e.State == Done || e.State == Dropped:
		return e, e.refuse("end", ErrState)
	case why == "":
		return e.end(Done, "", "", at), nil
	}
	return e.end(Dead, why, cause, at), nil
}

// GiveAgain queues an entry, in its place, of which its row does not tell whether a session has had
// it: the store is older. Its next hand-over is a repeat.
func (e Entry) GiveAgain() (Entry, error) {
	if !e.State.IsInFlight() && e.State != Queued && e.State != Later {
		return e, e.refuse("give again", ErrState)
	}
	if e.State != Later {
		e = e.requeue()
	}
	before := 1
	if e.Lane == Returning { // Offer counts none
		before = 2
	}
	e.Attempt, e.Untouched, e.Cancel = max(before, e.Attempt), false, ""
	return e, nil
}
