package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
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
	s.reload()
	session := hook.Under(held, s.record, s.spec.Home)
	if err := act(session); err != nil {
		return err
	}
	return session.Save()
}

// update changes the session record under the hook lock. When the lock cannot
// be had, or the record not be written, what is changed holds for the shim all
// the same, and is written later: no verdict waits for a disk.
func (s *shim) update(ctx context.Context, change func(*hook.Record)) {
	if s.adrift {
		change(s.record)
		return
	}
	changed := false
	err := s.hold(ctx, func(session *hook.Session) error {
		change(session.Record)
		changed = true
		return nil
	})
	if !changed {
		change(s.record)
	}
	if s.shown.wrong = err != nil; s.shown.wrong {
		s.failed.about("cannot change the session record", err, time.Now())
	}
}

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
	if err == nil {
		s.ledger.pass(1)
	}
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
		if err == nil && session.Heeds(f) != "" {
			s.ledger.pass(1)
		}
		return err
	})
	if err != nil {
		s.log.Warn("cannot tell what became of the entry in work", "err", err)
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

// reload reads session.json when it changed. What cannot be read says nothing.
func (s *shim) reload() {
	info, err := os.Lstat(filepath.Join(s.spec.Home, "session.json"))
	if err != nil {
		if s.shown.wrong = true; s.shown.goneAt.IsZero() {
			s.shown.goneAt = time.Now()
		}
		return
	}
	s.shown.goneAt = time.Time{}
	now := durable.StampOf(info, nil)
	if s.shown.read.Same(now) {
		return
	}
	s.shown.read = now
	told, err := hook.ReadRecord(s.spec.Home)
	if s.shown.wrong = err != nil || told == nil; s.shown.wrong {
		s.log.Debug("session record not read", "err", err)
		return
	}
	s.record, s.shown.wrong = hear(s.record, told, &s.ledger)
}

// mendEvery is how often a session record is corrected that differs from what hooks
// and shim have made it.
const mendEvery = 200 * time.Millisecond

// mend corrects it. A missing record is not written again at once, nor when
// something else is missing: its folder may be about to be removed, and a file in
// it would make rm -r fail.
func (s *shim) mend(ctx context.Context, now time.Time) {
	switch {
	case !s.shown.wrong || now.Sub(s.shown.mended) < mendEvery:
		return
	case !s.shown.goneAt.IsZero() && (now.Sub(s.shown.goneAt) < mendEvery || s.ground.Differs() != ""):
		return
	}
	s.shown.mended = now
	s.update(ctx, func(*hook.Record) {})
}
