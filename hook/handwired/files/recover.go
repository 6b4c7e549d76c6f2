package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/queue"
)

// Interruption tells Recover about the session that is gone.
type Interruption struct {
	Policy queue.OrphanPolicy
	// MaxAttempts is how many interrupted attempts an entry gets; when the last one is
	// interrupted, the entry is filed as poison. 0 means 5.
	MaxAttempts int
	// Arrived, when not nil, looks for evidence (in the transcript) that an entry got further
	// than its record says. In doubt it does not say Seen. Begins, when not nil, reports whether a
	// session can be started with the entry as its first prompt.
	Arrived func(*queue.Given) queue.Arrival
	Begins  func(*queue.Given) bool
	Now     time.Time
}

// Repaired is what Recover did where a damaged file was set aside and made again.
const Repaired queue.Outcome = "repaired"

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

// Recover decides what becomes of the entry in flight after its session is gone: one that the
// outbox or the dead letters know has ended, and one whose work is checked is left to heartbeat
// run (ErrRunHasIt). For any other queue.Entry.Recover decides. It returns the outcome, and the
// entry's record with the state that it went by.
//
// Recover can be interrupted and called again at any point: its decision follows from the record,
// and it files and counts nothing twice.
func (o *Orphaned) Recover(i Interruption) (queue.Outcome, *Record, error) {
	if i.Now.IsZero() {
		i.Now = time.Now()
	}
	if o.unlock == nil {
		return "", nil, errReleased
	}
	o.sweep()
	v, err := o.Look()
	if err != nil {
		return "", nil, err
	}
	defer v.Close()
	stale, damaged := v.stale, v.recordDamaged
	if err := o.repair(v); err != nil {
		return "", nil, err
	}
	if v.flight == nil {
		switch err := o.clearRecord(); {
		case err != nil:
			return "", nil, err
		case stale:
			return queue.StaleOrphanDeleted, nil, nil
		case damaged || v.at.aside:
			return Repaired, nil, nil
		}
		return queue.NothingToRecover, nil, nil
	}
	outcome, err := o.recoverFlight(v, i)
	if err != nil {
		return "", nil, fmt.Errorf("cannot recover entry %s: %w", v.flight.DeliveryID, err)
	}
	if damaged && outcome == queue.Requeued {
		outcome = Repaired
	}
	return outcome, v.InFlight(), nil
}

func (o *Orphaned) recoverFlight(v *View, i Interruption) (queue.Outcome, error) {
	f := v.flight
	switch done, err := o.isDelivered(f.DeliveryID); {
	case err != nil:
		return "", err
	case done:
		return queue.StaleOrphanDeleted, o.pass(v)
	case f.isRuns():
		return "", ErrRunHasIt
	}
	switch given, err := o.isGivenUp(f.DeliveryID); {
	case err != nil:
		return "", err
	case given:
		return queue.DeadLettered, o.pass(v)
	}
	about, err := o.evidence(f, i)
	if err != nil {
		return "", err
	}
	e, outcome := f.Entry().Recover(about, 0)
	switch e.State {
	case queue.Dropped:
		o.note("entry %s was dropped: its session ended, and a tool may have run for it", f.DeliveryID)
		return outcome, o.pass(v)
	case queue.Dead:
		f.Repeats = e.Repeats
		if err := o.file([]Dead{deadFlight(f, e.Reason, i.Now)}); err != nil {
			return "", err
		}
		return outcome, o.pass(v)
	}
	return outcome, o.requeue(v, Tries(e.Tries))
}

// evidence is what is known of an interruption. An entry of heartbeat-rs counts as started with
// its flag, which says that the entry was about to be printed; without, nobody was handed it.
func (o *Orphaned) evidence(f *flight, i Interruption) (queue.Interruption, error) {
	about := queue.Interruption{
		Policy: i.Policy, MaxAttempts: i.MaxAttempts, Counts: true, Unwatched: f.Unwatched, Now: i.Now,
		Begins: i.Begins != nil && i.Begins(f.Given()),
	}
	if !f.foreign {
		if i.Arrived != nil {
			about.Arrived = i.Arrived(f.Given())
		}
		return about, nil
	}
	flagged, err := o.IsFlagged()
	if about.Untaken = !flagged; flagged {
		f.State = queue.Started
	}
	return about, err
}

// isGivenUp reports whether an entry was given up by a recovery that was interrupted before it
// moved the cursor. One that was lost once and stands in the queue again was not.
func (r *Reader) isGivenUp(delivery string) (given bool, err error) {
	err = r.DeadLetters(func(d Dead) bool {
		given = d.DeliveryID == delivery && d.Reason != queue.Lost
		return !given
	})
	if given || errors.Is(err, ErrTooMuch) || errors.Is(err, durable.ErrNotRegular) {
		err = nil
	}
	return given, err
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
