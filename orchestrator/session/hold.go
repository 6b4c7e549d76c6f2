package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// turnWait is how long the shim waits until it may change its session, and askWait how long for
// what it asks of the queue: the session has its limits whether the scheduler answers or not.
const (
	turnWait = 5 * time.Second
	askWait  = 10 * time.Second
)

// hold runs act while no hook changes the session, with what the shim knows of it by then, and
// writes the record unless act fails. With asks, act may ask for what becomes of the entry in flight.
func (s *shim) hold(ctx context.Context, asks bool, act func(*hook.Session) error) (err error) {
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWait)
	defer cancel()
	session, err := s.live.Enter(waiting, asks)
	if err != nil {
		return fmt.Errorf("cannot change the session: %w", err)
	}
	defer session.Leave()
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

// update changes the session's record. When that cannot be done now, what is changed holds for the
// shim all the same, and is saved later.
func (s *shim) update(ctx context.Context, change func(*hook.Record)) {
	saved := false
	err := errAdrift
	if !s.adrift {
		err = s.hold(ctx, false, func(session *hook.Session) error {
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

// dealWith runs act with the session's entry in flight or nil, unless a hook has spoken since the
// moment that was judged.
func (s *shim) dealWith(ctx context.Context, before moment, what string, act func(*hook.Session, *queue.Given) error) {
	err := s.hold(ctx, true, func(session *hook.Session) error {
		if spoken(session.Record) != before {
			return errSpoken
		}
		return act(session, session.Own())
	})
	if err != nil && !errors.Is(err, errSpoken) {
		s.failed.about("cannot "+what, err, time.Now())
	}
}

// request asks the scheduler, in the session's place.
func request(ctx context.Context, session *hook.Session, steps ...wire.Step) (wire.Answer, error) {
	return session.Ask(context.WithoutCancel(ctx), askWait, steps...)
}

// finishEntry ends the session's entry with what its record tells of it. One that has to be checked
// is left to its check.
func finishEntry(ctx context.Context, session *hook.Session, g *queue.Given) error {
	_, err := request(ctx, session, session.Finishes(g, session.Record.Says(time.Now())))
	return err
}

// heeds counts the session's entry as done if its check has passed while no hook
// waited: none will.
func (s *shim) heeds(ctx context.Context) {
	if s.adrift {
		return
	}
	err := s.hold(ctx, true, func(session *hook.Session) error {
		_, err := request(ctx, session, session.Look())
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
	err := s.hold(ctx, true, func(session *hook.Session) error {
		switch g := session.Own(); {
		case g != nil && g.Delivery == o.Cancel.Delivery:
			as := queue.CancelForGood
			if o.Cancel.Again {
				as = queue.CancelAgain
			}
			if _, err := request(ctx, session, wire.Step{Do: wire.Cancel, At: wire.RefOf(&g.Entry), As: as}); err != nil {
				return err
			}
		case g != nil || o.Cancel.Delivery != "" || session.Record.Phase == hook.Waiting:
			return errDone
		}
		now := time.Now()
		session.Record.End(o.finishes(), o.Finish, now)
		session.Record.Ruling.Final = true
		session.Record.Enter(hook.Ending, now)
		return nil
	})
	if errors.Is(err, errDone) || errors.Is(err, queue.ErrStale) {
		return false
	}
	if err != nil {
		s.failed.about("cannot record what was cancelled", err, time.Now())
	}
	return true
}

// errDone means that what was to be cancelled is not in flight any more.
var errDone = errors.New("it is not in flight any more")

// abandon finishes the entry whose background tasks did not end in time.
func (s *shim) abandon(ctx context.Context) {
	if s.adrift {
		return
	}
	err := s.hold(ctx, true, func(session *hook.Session) error {
		g := session.Own()
		if g == nil || g.State != queue.Background {
			return errors.New("none waits for background tasks")
		}
		return finishEntry(ctx, session, g)
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
