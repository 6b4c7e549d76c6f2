package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook/flock"
)

// OrphanPolicy says what happens to a started entry in flight whose session was interrupted.
type OrphanPolicy string

// The orphan policies of heartbeat-rs.
const (
	Retry      OrphanPolicy = "retry"      // hand it over again
	DeadLetter OrphanPolicy = "deadletter" // file it, never hand it over again
	Drop       OrphanPolicy = "drop"       // forget it
)

// files reports whether the policy files an entry for which a tool may have run. An unknown
// policy does.
func (p OrphanPolicy) files() bool { return p != Retry && p != Drop }

// Arrival is what a search for evidence found about an offer without proof.
type Arrival int

// The possible arrivals.
const (
	Unknown Arrival = iota // there is nothing to look into
	Unseen                 // it is not there; a client that was killed may not have written it
	Seen                   // the session got it
	Worked                 // and a tool was called for it
)

// Interruption tells Recover about the session that is gone.
type Interruption struct {
	Policy OrphanPolicy
	// MaxAttempts is how many interrupted attempts an entry gets; when the last one is
	// interrupted, the entry is filed as poison. 0 means 5.
	MaxAttempts int
	// Arrived, when not nil, looks for evidence (in the transcript) that an entry got further
	// than its record says. In doubt it does not return Seen.
	Arrived func(*Record) Arrival
	Now     time.Time
}

const defaultAttempts = 5

// Outcome says what Recover did. The words are heartbeat-rs's where it has one.
type Outcome string

// The outcomes of Recover.
const (
	NothingToRecover   Outcome = "nothing-to-recover"
	StaleOrphanDeleted Outcome = "stale-orphan-deleted" // it had been acknowledged already
	Requeued           Outcome = "requeued"             // it is first in the queue again
	DeadLettered       Outcome = "dead-lettered"
	DroppedOrphan      Outcome = "dropped"
	Repaired           Outcome = "repaired" // a damaged file was set aside and made again
)

// ErrSessionLives means that a session that `heartbeat run` started holds the session lock.
var ErrSessionLives = errors.New("a session still lives")

// Orphaned is a queue without a session, where none can start because the session lock is held
// too. Its entry in flight is an orphan.
type Orphaned struct {
	*Held
	unlockSession func() error
}

// LockOrphaned takes the session lock, or returns ErrSessionLives, and then the hook lock, for
// which it waits until ctx ends.
func (q *Queue) LockOrphaned(ctx context.Context) (*Orphaned, error) {
	unlock, err := flock.TryLockIn(q.dir, SessionLock)
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("%w: %w", ErrSessionLives, err)
	}
	if err != nil {
		return nil, err
	}
	held, err := q.Lock(ctx)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return &Orphaned{held, unlock}, nil
}

// Unlock releases both locks.
func (o *Orphaned) Unlock() error { return errors.Join(o.Held.Unlock(), o.unlockSession()) }

// Recover decides what becomes of the entry in flight after its session is gone. It returns the
// outcome, and the entry's record with the state that it went by. The first of these that applies
// decides:
//
//  1. The last outbox record is the entry's: it is done, and the cursor follows. It is a dead
//     letter already, by a recovery that was interrupted: the cursor follows.
//  2. Its work is checked, by `heartbeat run`: ErrRunHasIt. A person has cancelled it there: a
//     dead letter.
//  3. The state that counts is determined (weigh).
//  4. Started, or background: dropped under drop; a dead letter, interrupted, under deadletter.
//  5. It has used up its attempts: a dead letter, poison.
//  6. Otherwise it is queued again at the head of the queue, and the sidecar keeps its attempts.
//
// Recover can be interrupted and called again at any point: its decision follows from the record,
// and it files and counts nothing twice.
func (o *Orphaned) Recover(i Interruption) (Outcome, *Record, error) {
	if i.Now.IsZero() {
		i.Now = time.Now()
	}
	o.sweep()
	v, err := o.Look()
	if err != nil {
		return "", nil, err
	}
	defer v.Close()
	stale, damaged := v.stale, v.recordDamaged
	aside := v.at.aside
	if err := o.repair(v); err != nil {
		return "", nil, err
	}
	if v.flight == nil {
		switch err := o.clearRecord(); {
		case err != nil:
			return "", nil, err
		case stale:
			return StaleOrphanDeleted, nil, nil
		case damaged || aside:
			return Repaired, nil, nil
		}
		return NothingToRecover, nil, nil
	}
	outcome, err := o.recoverFlight(v, i)
	if err != nil {
		return "", nil, fmt.Errorf("cannot recover entry %s: %w", v.flight.DeliveryID, err)
	}
	if damaged && outcome == Requeued {
		outcome = Repaired
	}
	return outcome, v.InFlight(), nil
}

func (o *Orphaned) recoverFlight(v *View, i Interruption) (Outcome, error) {
	f := v.flight
	switch done, err := o.isDelivered(f.DeliveryID); {
	case err != nil:
		return "", err
	case done:
		return StaleOrphanDeleted, o.pass(v)
	case f.isRuns():
		return "", ErrRunHasIt
	}
	switch given, err := o.isGivenUp(f.DeliveryID); {
	case err != nil:
		return "", err
	case given:
		return DeadLettered, o.pass(v)
	case f.Cancel != "":
		return DeadLettered, o.bury(v, Cancelled, i)
	}
	if err := o.weigh(f, i); err != nil {
		return "", err
	}
	if f.State.rank() >= Taken.rank() {
		f.Repeats++
	}
	return o.orphan(v, i)
}

// weigh decides which state an interrupted entry counts as.
//
// One of heartbeat-rs counts as started with its flag, which says that the entry was about to be
// printed, and as offered without; it was handed over to nobody then. Otherwise the transcript
// may show that an entry was taken, or that a tool was called for it. Where no hook reported
// tools, taken counts as started; so does offered when there is no transcript to read or the
// policy is to file it.
func (o *Orphaned) weigh(f *flight, i Interruption) error {
	if f.foreign {
		flagged, err := o.IsFlagged()
		if flagged {
			f.State = Started
		}
		f.Untouched = !flagged
		return err
	}
	f.Untouched = false
	arrived := Unknown
	if f.State.rank() <= Taken.rank() && i.Arrived != nil {
		arrived = i.Arrived(&f.Record)
	}
	switch {
	case arrived == Worked:
		f.State = Started
	case arrived == Seen && f.State == Offered:
		f.State = Taken
	}
	if f.Unwatched && (f.State == Taken || f.State == Offered && (arrived == Unknown || i.Policy.files())) {
		f.State = Started // a tool may have run for it without anything telling us
	}
	return nil
}

// orphan decides by the entry's state, by what its interruptions have used up and by the policy.
func (o *Orphaned) orphan(v *View, i Interruption) (Outcome, error) {
	f := v.flight
	limit := i.MaxAttempts
	if limit <= 0 {
		limit = defaultAttempts
	}
	started := f.State.rank() >= Started.rank()
	switch {
	case started && i.Policy == Drop:
		o.note("entry %s was dropped: its session ended, and a tool may have run for it", f.DeliveryID)
		return DroppedOrphan, o.pass(v)
	case started && i.Policy.files():
		return DeadLettered, o.bury(v, Interrupted, i)
	case f.Repeats >= limit:
		return DeadLettered, o.bury(v, Poison, i)
	}
	return Requeued, o.requeue(v, f.Tries)
}

// isGivenUp reports whether an entry was given up by a recovery that was interrupted before it
// moved the cursor. One that was lost once and stands in the queue again was not.
func (r *Reader) isGivenUp(delivery string) (given bool, err error) {
	err = r.DeadLetters(func(d Dead) bool {
		given = d.DeliveryID == delivery && d.Reason != Lost
		return !given
	})
	if given || errors.Is(err, ErrTooMuch) {
		err = nil
	}
	return given, err
}

// bury files the entry in flight as a dead letter and moves the cursor past it.
func (o *Orphaned) bury(v *View, why Reason, i Interruption) error {
	if err := o.file([]Dead{deadFlight(v.flight, why, i.Now)}); err != nil {
		return err
	}
	return o.pass(v)
}

// theirTemporaries are heartbeat-rs's names for temporary files.
var theirTemporaries = []string{".dead-letter.jsonl.tmp", ".in-flight.tmp", ".inbox-offset.tmp"}

// sweep removes temporary files that killed processes left, ours and heartbeat-rs's.
func (o *Orphaned) sweep() {
	err := o.dir.Sweep(time.Hour)
	for _, name := range theirTemporaries {
		if info, statErr := o.dir.Stat(name); statErr == nil && !info.IsDir() {
			err = errors.Join(err, o.dir.Remove(name))
		}
	}
	if err != nil {
		o.note("%v", err)
	}
}
