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
// An entry whose turn was ended by a temporary failure stays as it is (Kept).
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
	v, err := o.look()
	if err != nil {
		return "", nil, err
	}
	defer v.close()
	stale, corrupt := v.stale, v.flightCorrupt || v.verdict.aside
	if err := o.repair(v); err != nil {
		return "", nil, err
	}
	if v.flight == nil && !stale {
		if err := o.restore(v, i.Delivery, 1, Offering{}); err != nil {
			return "", nil, err
		}
	}
	if v.flight == nil {
		switch err := o.clearFlight(); {
		case err != nil:
			return "", nil, err
		case stale:
			return StaleOrphanDeleted, nil, nil
		case corrupt:
			return Repaired, nil, nil
		}
		return NothingToRecover, nil, nil
	}
	outcome, err := o.recoverFlight(v, i)
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

func (h *Held) recoverFlight(v *view, i Interruption) (Outcome, error) {
	f := v.flight
	done, err := h.delivered(f.DeliveryID)
	if err != nil {
		return "", err
	}
	if done {
		return StaleOrphanDeleted, h.pass(v)
	}
	if i.Finished != nil {
		if a := i.Finished(f.InFlight); a != nil {
			_, err := h.finish(v, *a)
			return StaleOrphanDeleted, err
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
	if f.Failure != "" && i.Passes != nil && i.Passes(f.Failure) {
		return Kept, nil
	}
	untaken, err := h.weigh(f, i)
	if err != nil {
		return "", err
	}
	repeats := f.Repeats
	if i.Counts && f.State.rank() >= Taken.rank() {
		repeats++
	}
	f.Repeats = repeats
	untouched := !f.Repeat() && (untaken || i.Refused && f.State.rank() <= Taken.rank())
	limit := i.MaxAttempts
	if limit <= 0 {
		limit = defaultAttempts
	}
	started := f.State.rank() >= Started.rank()
	switch {
	case started && i.Policy == Drop:
		h.note("entry %s was dropped: its session ended after a tool had run", f.DeliveryID)
		return DroppedOrphan, h.pass(v)
	case started && i.Policy.files():
		return DeadLettered, h.bury(v, Interrupted, i)
	case repeats >= limit || i.Poison:
		return DeadLettered, h.bury(v, Poison, i)
	}
	return Requeued, h.requeue(v, Tries{f.Attempt, repeats, untouched})
}

// weigh decides which state an interrupted entry counts as, and whether it
// demonstrably reached no session.
func (q *Queue) weigh(f *flight, i Interruption) (untaken bool, err error) {
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

// bury files the entry in flight as a dead letter and moves the cursor past it.
func (h *Held) bury(v *view, why Reason, i Interruption) error {
	d := deadFlight(v.flight, why, i.Now)
	d.Cause = i.Cause
	if err := h.file([]DeadEntry{d}); err != nil {
		return err
	}
	return h.pass(v)
}

// cancelFlight files the entry in flight that a person has cancelled and, where
// that is wanted, queues it again. Interrupted in between it is a dead letter.
func (h *Held) cancelFlight(v *view, i Interruption) (Outcome, error) {
	f := v.flight
	if err := h.bury(v, Cancelled, i); err != nil {
		return "", err
	}
	if f.Cancel != CancelAgain {
		return CancelledOrphan, nil
	}
	_, err := h.RetryDead(f.DeliveryID)
	return QueuedAgain, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
