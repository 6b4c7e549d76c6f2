package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/internal/fakeapi"
)

// scene is a short life of a client, and what it tells of promises.
type scene struct {
	name  string
	model []fakeapi.Rule
	// tells is the promise that is broken where the client does not get far enough to
	// tell of another one.
	tells Promise
	play  func(s *stage)
}

// stage is a scene that is played. What its methods find out of order ends the scene.
type stage struct {
	*lab
	ctx   context.Context
	tells Promise
	tally tally
	run   *run
	err   error // why the scene could not be played
}

// over ends a scene.
type over struct{}

// perform plays a scene in a lab of its own, and returns what was seen. The error says
// that nothing is known: the machine could not do it, or the client asked a person.
func (sc scene) perform(ctx context.Context, dir string, o order) (tally, error) {
	l, err := newLab(dir, o, sc.model)
	if err != nil {
		return tally{}, err
	}
	defer l.api.Close()
	s := &stage{lab: l, ctx: ctx, tells: sc.tells, tally: newTally()}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (over{}) {
				panic(r)
			}
		}()
		sc.play(s)
	}()
	if s.run != nil {
		hurry, stop := context.WithCancel(context.WithoutCancel(ctx))
		stop()
		s.run.child.End(hurry)
	}
	return s.tally, errors.Join(s.err, ctx.Err())
}

// keeps records whether a promise is kept, in one respect.
func (s *stage) keeps(p Promise, kept bool, format string, args ...any) bool {
	switch {
	case kept:
		s.tally.kept[p] = true
	case s.ctx.Err() != nil:
		s.cannot(context.Cause(s.ctx)) // who is stopped waits no longer, and kills the client at once
	case s.tally.broken[p] == "":
		s.tally.broken[p] = fmt.Sprintf(format, args...)
	}
	return kept
}

// must is keeps for what the rest of the scene needs.
func (s *stage) must(p Promise, kept bool, format string, args ...any) {
	if !s.keeps(p, kept, format, args...) {
		panic(over{})
	}
}

// cannot ends a scene of which nothing is known.
func (s *stage) cannot(err error) {
	if s.err = err; err != nil {
		panic(over{})
	}
}

// until waits for something, and reports whether it came within the patience.
func (s *stage) until(ok func() bool) bool { return s.within(s.patience, ok) }

func (s *stage) within(limit time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(limit)
	for !ok() {
		if s.ctx.Err() != nil {
			s.cannot(context.Cause(s.ctx))
		}
		if time.Now().After(deadline) {
			return ok()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// hears waits for the nth call of a hook; an end of the client ends the wait.
func (s *stage) hears(event string, n int) bool {
	s.until(func() bool { return len(s.calls(event)) >= n || s.run.ended() })
	return len(s.calls(event)) >= n
}

// called waits for the nth call of a hook, which the rest of the scene needs.
func (s *stage) called(p Promise, event string, n int, when string) call {
	s.must(p, s.hears(event, n), "%s: %s was called %d times, not %d (%s)", when, event, len(s.calls(event)), n, s.state())
	c := s.calls(event)[n-1]
	s.must(HookFields, c.event != nil && c.event.Name == event, "%s: %s was told %.200q", when, event, c.payload)
	return c
}

// state says how the client stands.
func (s *stage) state() string {
	text := fmt.Sprintf("waited %v; its screen shows: %s", s.patience, s.run.shown.lines(4))
	if s.run.ended() {
		text = "it has ended; its screen shows: " + s.run.shown.lines(4)
	}
	return text
}

// settleFor is how long a hook's call may come after what it belongs to.
const settleFor = 5 * time.Second

// begin starts the client and waits until its session has begun.
func (s *stage) begin(args ...string) {
	before := len(s.calls(client.SessionStart))
	var err error
	s.run, err = s.lab.start(s.ctx, args...)
	s.cannot(err)
	asked := len(s.api.Requests())
	began := func() bool { return len(s.calls(client.SessionStart)) > before }
	s.until(func() bool { return began() || s.run.ended() || len(s.api.Requests()) > asked })
	switch {
	case s.within(time.Second, began):
		s.keeps(Starts, true, "")
	case s.run.ended():
		s.must(s.tells, false, "it ended with status %d: %s", s.run.child.End(s.ctx).Code, s.run.shown.lines(4))
	case len(s.api.Requests()) > asked:
		s.must(s.startsHooks(), s.within(min(settleFor, s.patience), began), "the model was asked, and no hook was called at the session's start")
	default:
		if d := client.Claude.Terminal.Asks(s.run.shown.lines(50)); d != nil {
			s.cannot(fmt.Errorf("it asks %s before it begins", d.What))
		}
		s.cannot(fmt.Errorf("it did not begin a session within %v; its screen shows: %s", s.patience, s.run.shown.lines(4)))
	}
}

// startsHooks is what is broken where a session begins without our hooks.
func (s *stage) startsHooks() Promise {
	if s.tells == Starts {
		return HooksRun
	}
	return s.tells
}

// ends ends the client as a session is ended.
func (s *stage) ends(when string) {
	ended := len(s.calls(client.SessionEnd))
	exit := s.run.child.End(s.ctx)
	s.keeps(Signals, exit.Signal == "", "%s: it did not end within %v of SIGTERM", when, s.grace())
	if exit.Signal == "" {
		told := s.within(min(settleFor, s.patience), func() bool { return len(s.calls(client.SessionEnd)) > ended })
		s.keeps(HooksRun, told, "%s: SessionEnd was not called", when)
	}
}

// arrives checks that a text has reached the model once, in a message of the user's.
func (s *stage) arrives(p Promise, what, text string, as func(asked, text string) bool) {
	found := func() *fakeapi.Request {
		for _, r := range s.api.Requests() {
			if slices.ContainsFunc(r.Prompts(), func(asked string) bool { return as(asked, text) }) {
				return r
			}
		}
		return nil
	}
	if !s.within(min(settleFor, s.patience), func() bool { return found() != nil }) {
		last := []string{"nothing"}
		if all := s.api.Requests(); len(all) > 0 {
			last = all[len(all)-1].Prompts()
		}
		s.keeps(p, false, "%s did not reach the model unchanged; the last that it was asked: %.300q", what, last)
		return
	}
	n := found().Copies(text)
	s.keeps(p, n == 1, "%s reached the model %d times in one request", what, n)
}
