package inbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// defaultAttempts is the default of MaxAttempts.
const defaultAttempts = 5

// Recover decides what happens to the entry in flight after its session is gone. It
// returns the outcome, and the entry's record with the state that it based the
// decision on: Arrived may have found a later one, and taken or heartbeat-rs's flag
// may count as another.
//
// An entry whose turn was ended by a temporary failure stays as it is (Kept), and so
// does one whose work is being checked (LeftChecking) or is to go on (LeftUnproven).
// One that is checked, and that a session may have done before it was interrupted, is
// checked first. If that does not pass, call Recover again after the verdict: then it
// decides as about any other entry.
//
// Recover can be interrupted and called again at any point: its decision follows
// from the record, and it files and counts nothing twice.
func (o Orphaned) Recover(i Interruption) (Outcome, *InFlight, error) {
	if i.Now.IsZero() {
		i.Now = time.Now()
	}
	if err := o.check(); err != nil {
		return "", nil, err
	}
	o.sweep()
	carrier := o.carrier()
	outcome, f, err := carrier.recoverHere(i)
	for _, l := range o.lanes() {
		if err != nil || l.urgent == carrier.urgent || !l.has(l.flight) && (outcome != NothingToRecover || i.Delivery == "") {
			continue
		}
		also, other, otherErr := l.recoverHere(i)
		if err = otherErr; also != NothingToRecover && f == nil {
			outcome, f = also, other
		}
	}
	return outcome, f, err
}

func (h *heldLane) recoverHere(i Interruption) (Outcome, *InFlight, error) {
	v, err := h.look()
	if err != nil {
		return "", nil, err
	}
	defer v.close()
	stale, corrupt := v.stale, v.flightCorrupt || v.verdict.aside
	if err := h.repair(v); err != nil {
		return "", nil, err
	}
	if v.flight == nil && !stale {
		if err := h.restore(v, i.Delivery, 1, Offering{}); err != nil {
			return "", nil, err
		}
	}
	if v.flight == nil {
		switch err := h.clearFlight(); {
		case err != nil:
			return "", nil, err
		case stale:
			return StaleOrphanDeleted, nil, nil
		case corrupt:
			return Repaired, nil, nil
		}
		return NothingToRecover, nil, nil
	}
	outcome, err := h.recoverFlight(v, i)
	if err != nil {
		return "", nil, fmt.Errorf("cannot recover entry %s: %w", v.flight.DeliveryID, err)
	}
	if v.flightCorrupt && outcome == Requeued {
		outcome = Repaired
	}
	return outcome, v.record(), nil
}

// theirTemporaries are heartbeat-rs's names for temporary files.
var theirTemporaries = []string{".dead-letter.jsonl.tmp", ".in-flight.tmp", ".inbox-offset.tmp"}

// sweep removes temporary files that killed processes left, ours and
// heartbeat-rs's.
func (h *Held) sweep() {
	err := h.dir.Sweep(time.Hour)
	for _, name := range theirTemporaries {
		if info, statErr := h.dir.Stat(name); statErr == nil && !info.IsDir() {
			err = errors.Join(err, h.dir.Remove(name))
		}
	}
	if err != nil {
		h.note("%v", err)
	}
}

// endedBefore reports whether an entry was done or given up before its record was deleted.
func (h *heldLane) endedBefore(f *flight, i Interruption) (bool, error) {
	done, err := h.delivered(f.DeliveryID)
	if err != nil || done {
		return done && !i.checks(f), err // if it is checked, only a verdict has done it, which is given again
	}
	if !f.apart() {
		return false, nil
	}
	return h.GivenUp(f.DeliveryID) // no cursor tells that
}

// endsUnseen ends an entry that its session has finished, though no hook was there to say
// so: it waits for its check, or it is done.
func (h *heldLane) endsUnseen(v *view, i Interruption, a Acknowledgement) (Outcome, error) {
	if i.checks(v.flight) {
		v.flight.asks(a.claim())
		return LeftChecking, h.own(v.flight)
	}
	_, err := h.finish(v, newDelivery(v.flight, a))
	return StaleOrphanDeleted, err
}

// recoverFlight decides about an entry whose session is gone, in the order of README.md.
func (h *heldLane) recoverFlight(v *view, i Interruption) (Outcome, error) {
	if outcome, err := h.decided(v, i); outcome != "" || err != nil {
		return outcome, err
	}
	f := v.flight
	if f.State == Unproven && i.Judged != nil && !i.Judged(f.InFlight) {
		f.State, f.Interrupted = Started, ""
	}
	switch {
	case f.State == Checking:
		return LeftChecking, nil
	case f.State == Unproven && f.Interrupted == "":
		return LeftUnproven, nil
	case f.State == Unproven: // its interruption was counted before it was checked
		f.State = f.Interrupted
		return h.orphan(v, i, false)
	case f.Failure != "" && i.Passes != nil && i.Passes(f.Failure):
		return Kept, nil
	case i.wasUnread(f):
		return h.unread(v, i)
	}
	untaken, err := h.weigh(f, i)
	if err != nil {
		return "", err
	}
	if i.usesUp(f) {
		f.Repeats++
	}
	if outcome, err := h.leaves(f, i); outcome != "" || err != nil {
		return outcome, err
	}
	return h.orphan(v, i, untaken)
}

// decided finishes an entry about which its state says nothing more: it is done or given
// up already, or somebody has cancelled it, or it is over its budget. "": it is none of these.
func (h *heldLane) decided(v *view, i Interruption) (Outcome, error) {
	f := v.flight
	switch ended, err := h.endedBefore(f, i); {
	case err != nil:
		return "", err
	case ended:
		return StaleOrphanDeleted, h.pass(v)
	}
	if i.Finished != nil && f.State.rank() < Checking.rank() {
		if a := i.Finished(f.InFlight); a != nil {
			return h.endsUnseen(v, i, *a)
		}
	}
	if i.Cancel != nil && i.Cancel.Delivery == f.DeliveryID {
		f.Cancel = i.Cancel.mark()
	}
	if f.Cancel != "" {
		return h.cancelFlight(v, i)
	}
	if f.DeliveryID == i.OverBudget {
		return DeadLettered, h.bury(v, OverBudget, i)
	}
	if f.State.rank() >= Checking.rank() {
		return "", nil
	}
	given, err := h.buried(f.DeliveryID)
	if err != nil || !given {
		return "", err
	}
	return DeadLettered, h.pass(v)
}

// orphan decides what becomes of an entry whose session is gone, by its state, by
// what its interruptions have used up and by the policy.
func (h *heldLane) orphan(v *view, i Interruption, untaken bool) (Outcome, error) {
	f := v.flight
	repeats := f.Repeats
	untouched := !f.Repeat() && (untaken || i.Refused && f.State.rank() <= Taken.rank())
	started := f.State.rank() >= Started.rank()
	switch {
	case started && i.Policy == Drop && (!f.apart() || i.Ends != nil):
		h.note("entry %s was dropped: its session ended, and a tool may have run for it", f.DeliveryID)
		if err := i.ends(f); err != nil {
			return "", err
		}
		return DroppedOrphan, h.pass(v)
	case started && (i.Policy.files() || i.Policy == Drop): // without a trace it would be put back
		return DeadLettered, h.bury(v, Interrupted, i)
	case repeats >= i.limit() || i.Poison:
		return DeadLettered, h.bury(v, Poison, i)
	}
	if f.apart() { // it is first already, and no line of the queue
		f.Tries = Tries{f.Attempt + 1, repeats, untouched, f.Unread}
		return h.leaveUnproven(f)
	}
	return Requeued, h.requeue(v, Tries{f.Attempt, repeats, untouched, f.Unread})
}

// unread decides what becomes of an entry whose session has not read the file in which it was
// handed over: the next session begins with it. Where none can, it is given up at once: by a
// file it would not be read the next time either.
func (h *heldLane) unread(v *view, i Interruption) (Outcome, error) {
	f := v.flight
	if i.Begins == nil || !i.Begins(f.InFlight) {
		return DeadLettered, h.bury(v, Unread, i)
	}
	if f.Iteration > 1 || f.apart() {
		return h.leaveUnproven(f)
	}
	t := f.Tries
	t.Untouched = !f.Repeat() && f.State.rank() <= Taken.rank() // otherwise a tool has run, for whatever
	return Requeued, h.requeue(v, t)
}

// leaveUnproven has the next session go on with an entry where it stands.
func (h *heldLane) leaveUnproven(f *flight) (Outcome, error) {
	f.State, f.Interrupted, f.Claim, f.Failure = Unproven, "", nil, ""
	return LeftUnproven, h.own(f)
}

// wasUnread reports whether the entry's last session has ended without reading its file.
func (i Interruption) wasUnread(f *flight) bool {
	if f.File == "" || !f.Unread {
		return false
	}
	if i.Arrived != nil { // it may have read it later
		got := i.Arrived(f.InFlight)
		f.Unread = got != Seen && got != Worked
	}
	return f.Unread
}

// ends says that an entry ends which was set aside once.
func (i Interruption) ends(f *flight) error {
	if !f.apart() || i.Ends == nil {
		return nil
	}
	return i.Ends(f.DeliveryID)
}

// weigh decides which state an interrupted entry counts as, and whether it
// demonstrably reached no session.
func (q *lane) weigh(f *flight, i Interruption) (untaken bool, err error) {
	if f.foreign {
		// heartbeat-rs's flag says that the entry was about to be printed.
		// heartbeat-rs has no hook that would tell whether a tool ran.
		_, err := q.dir.Stat(respondedFile)
		if err == nil {
			f.State = Started
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return err != nil, nil
	}
	arrived := Unknown
	if f.State.rank() <= Taken.rank() && i.Arrived != nil {
		arrived = i.Arrived(f.InFlight)
	}
	switch {
	case arrived == Worked:
		f.State = Started
	case arrived == Seen && f.State == Offered:
		f.State = Taken
	}
	untaken = f.State == Offered && i.Untaken
	switch {
	case !f.Unwatched && !i.Unwatched || untaken:
	case f.State == Taken, f.State == Offered && (arrived == Unknown || i.Policy.files()):
		// A tool may have run for it without anything telling us.
		f.State = Started
	}
	return untaken, nil
}

// files reports whether the policy files an entry for which a tool may have run. An
// unknown policy does.
func (p OrphanPolicy) files() bool { return p != Retry && p != Drop }

// buried reports whether an entry was given up by a recovery that was interrupted before it
// moved the cursor: this one may know less of why, or go by another policy. An entry that
// was lost once and stands in the queue again is not.
func (q *Queue) buried(delivery string) (is bool, err error) {
	if given, err := q.GivenUp(delivery); !given || err != nil {
		return false, err
	}
	_, err = q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		is = d != nil && d.DeliveryID == delivery && d.Reason != Lost
		return !is
	})
	if is || errors.Is(err, ErrTooMuch) {
		err = nil
	}
	return is, err
}

// bury files the entry in flight as a dead letter and moves the cursor past it.
func (h *heldLane) bury(v *view, why Reason, i Interruption) error {
	d := deadFlight(v.flight, why, i.Now)
	d.Cause = i.Cause
	if err := h.held.unfile(d.DeliveryID); err != nil {
		return err
	}
	if err := h.file([]DeadEntry{d}); err != nil {
		return err
	}
	return h.pass(v)
}

// cancelFlight files the entry in flight that a person has cancelled and, where
// that is wanted, queues it again. Interrupted in between it is a dead letter.
func (h *heldLane) cancelFlight(v *view, i Interruption) (Outcome, error) {
	f := v.flight
	if err := h.bury(v, Cancelled, i); err != nil {
		return "", err
	}
	if f.Cancel != CancelAgain {
		return CancelledOrphan, nil
	}
	if err := i.ends(f); err != nil {
		return CancelledOrphan, err
	}
	_, err := h.held.RetryDead(f.DeliveryID)
	return QueuedAgain, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
