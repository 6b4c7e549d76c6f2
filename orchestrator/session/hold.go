package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
)

// lockHooks takes the hook lock. Where it could not be had the last time it does
// not wait as long again: the session has its limits whoever holds it.
func (s *shim) lockHooks(ctx context.Context) (*inbox.Held, error) {
	wait := lockWait
	if s.shut {
		wait = lockAgain
	}
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	held, err := s.queue.Lock(waiting)
	s.shut = err != nil
	return held, err
}

// hold runs act under the hook lock, with what the shim knows of its session by
// then, and writes the record unless act fails.
func (s *shim) hold(ctx context.Context, act func(*hook.Session) error) (err error) {
	held, err := s.lockHooks(ctx)
	if err != nil {
		return fmt.Errorf("cannot lock the queue: %w", err)
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	session := s.live.Under(held)
	for _, change := range s.owed {
		change(session.Record)
	}
	if err := act(session); err != nil {
		return err
	}
	s.owed = nil
	err = session.Save()
	s.reload()
	return err
}

// update changes the session's record under the hook lock. When the lock cannot
// be had, what is changed holds for the shim all the same, and is saved later.
func (s *shim) update(ctx context.Context, change func(*hook.Record)) {
	saved := false
	err := errAdrift
	if !s.adrift {
		err = s.hold(ctx, func(session *hook.Session) error {
			change(session.Record)
			saved = true
			return nil
		})
	}
	if !saved {
		s.owed = append(s.owed, change)
		s.reload()
	}
	if err != nil && !s.adrift {
		s.failed.about("cannot change the session record", err, time.Now())
	}
}

// errAdrift means that nothing is written any more where the session was.
var errAdrift = errors.New("the ground is gone")

// errSpoken means that a hook has spoken since the moment that was judged.
var errSpoken = errors.New("a hook has spoken since")

// dealWith runs act under the hook lock, with the session's entry in flight or
// nil, unless a hook has spoken since the moment that was judged.
func (s *shim) dealWith(ctx context.Context, before moment, what string, act func(*hook.Session, *inbox.InFlight) error) {
	err := s.hold(ctx, func(session *hook.Session) error {
		if spoken(session.Record) != before {
			return errSpoken
		}
		f, err := s.own(session)
		if err != nil {
			return err
		}
		return act(session, f)
	})
	if err != nil && !errors.Is(err, errSpoken) {
		s.failed.about("cannot "+what, err, time.Now())
	}
}

// own returns the entry in flight where it is this session's, or nil.
func (s *shim) own(session *hook.Session) (*inbox.InFlight, error) {
	f, err := session.InFlight()
	if err != nil || f == nil || f.Session != s.spec.Session {
		return nil, err
	}
	return f, nil
}

// acknowledge finishes the session's entry with what its record tells of it. One that
// has to be checked is left to its check.
func (s *shim) acknowledge(session *hook.Session, f *inbox.InFlight) error {
	done := *session.Record.Acknowledges(time.Now())
	if session.Checks(f) {
		_, err := session.Check(done)
		return err
	}
	_, err := session.Acknowledge(done)
	return err
}

// heeds counts the session's entry as done if its check has passed while no hook
// waited: none will.
func (s *shim) heeds(ctx context.Context) {
	if s.adrift || s.record.Work == nil {
		return
	}
	err := s.hold(ctx, func(session *hook.Session) error {
		f, err := session.InFlight()
		if err == nil {
			session.Heeds(f)
		}
		return err
	})
	if err != nil {
		s.log.Warn("cannot tell what became of the entry in flight", "err", err)
	}
}

// cancels keeps a person's wish with the session's entry in flight, and has no
// hook hand over another one. It is false when that entry is done already. Where
// the wish cannot be kept, who recovers the entry knows of it, too.
func (s *shim) cancels(ctx context.Context, o Order) bool {
	err := s.hold(ctx, func(session *hook.Session) error {
		f, err := s.own(session)
		if err != nil {
			return err
		}
		switch {
		case f != nil || o.Cancel.Delivery != "":
			_, err = session.Cancel(*o.Cancel)
		case session.Record.Phase == hook.Waiting:
			err = inbox.ErrNothingInFlight
		}
		if err != nil {
			return err
		}
		now := time.Now()
		session.Record.End(o.finishes(), o.Finish, now)
		session.Record.Ruling.Final = true
		session.Record.Enter(hook.Ending, now)
		return nil
	})
	if errors.Is(err, inbox.ErrNothingInFlight) {
		return false
	}
	if err != nil {
		s.failed.about("cannot record what was cancelled", err, time.Now())
	}
	return true
}

// abandon finishes the entry whose background tasks did not end in time.
func (s *shim) abandon(ctx context.Context) {
	if s.adrift {
		return
	}
	err := s.hold(ctx, func(session *hook.Session) error {
		f, err := s.own(session)
		if err == nil && (f == nil || f.State != inbox.Background) {
			err = errors.New("none waits for background tasks")
		}
		if err != nil {
			return err
		}
		return s.acknowledge(session, f)
	})
	if err != nil {
		s.log.Warn("cannot acknowledge the entry", "err", err)
	}
}

// reload takes the record as it was saved last, with what could not be saved yet.
func (s *shim) reload() {
	s.saved = s.live.Record()
	if s.record = s.saved; len(s.owed) > 0 {
		s.record = s.saved.With(s.owed...)
	}
}

// mendEvery is how often it is tried to save what could not be, and to show a session record
// again that somebody has changed.
const mendEvery = 200 * time.Millisecond

// mend does that. A record that is missing is not written again at once, nor while something else
// is missing: its folder may be about to be removed, and a file in it would make rm -r fail.
func (s *shim) mend(ctx context.Context, now time.Time) {
	if s.adrift || now.Sub(s.mended) < mendEvery {
		return
	}
	s.mended = now
	switch {
	case len(s.owed) > 0:
		s.update(ctx, func(*hook.Record) {})
	case s.live.Shows():
		s.unshown = false
	case !s.unshown || s.ground.Differs() != "":
		s.unshown = true
	default:
		if err := s.live.ShowAgain(); err != nil {
			s.failed.about("cannot write the session record", err, now)
		}
	}
}
