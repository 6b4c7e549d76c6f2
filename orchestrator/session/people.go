package session

import (
	"context"
	"time"

	"heartbeat/hook"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

// noteEvery is how often a person's key presses are written into the record.
const noteEvery = time.Second

// openDesk lets people join the session. If that fails, the session runs without
// it. The caller holds the session lock, so a socket that exists is stale.
func (s *shim) openDesk() {
	if s.spec.Socket == "" {
		return
	}
	desk, err := attach.Listen(s.spec.Socket, attach.Config{
		Agent: s.spec.Agent, Session: s.spec.Session, Log: s.log, Person: s.person,
		Size: attach.Size{Rows: ptyrun.DefaultRows, Cols: ptyrun.DefaultCols},
	})
	if err != nil {
		s.log.Warn("nobody can join the session", "err", err)
		return
	}
	s.term.desk = desk
}

// peopleChanged signals that somebody has joined, typed or left.
func (s *shim) peopleChanged() <-chan struct{} {
	if s.term.desk == nil {
		return nil
	}
	return s.term.desk.Changed()
}

// people are those who have joined the session and may type.
type people struct {
	attached int
	typed    time.Time // when one of them last pressed a key
	// done is the value of typed when they were said to be done.
	done time.Time
	// noted is what the record says, as of the time when that was written.
	noted struct {
		attached  int
		typed, at time.Time
	}
}

// notePeople records for the hooks who is at the terminal: while a person types,
// nothing is handed over.
func (s *shim) notePeople(ctx context.Context, now time.Time) {
	if s.term.desk == nil {
		return
	}
	p := &s.people
	var done time.Time
	if p.attached, p.typed, done = s.term.desk.People(); done.After(p.done) {
		p.done = done
		s.showPeople(ctx)
	}
	same := p.attached == p.noted.attached
	if same && !p.typed.After(p.noted.typed) {
		return
	}
	// The first key counts at once, the last of many within noteEvery.
	if same && now.Sub(p.noted.at) < noteEvery && p.typed.Sub(p.noted.typed) < noteEvery {
		return
	}
	p.noted.attached, p.noted.typed, p.noted.at = p.attached, p.typed, now
	s.showPeople(ctx)
}

// showPeople writes it into the record.
func (s *shim) showPeople(ctx context.Context) {
	typed := s.people.typed
	if !typed.IsZero() && !typed.After(s.people.done) {
		typed = typed.Add(-hook.TypingPause) // long ago
	}
	s.update(ctx, func(r *hook.Record) { r.Attached, r.TypedAt = s.people.attached, typed })
}

// handBack releases prompts that wait because a person has typed.
func (s *shim) handBack(ctx context.Context) {
	if s.people.typed.After(s.people.done) {
		s.people.done = s.people.typed
		s.showPeople(ctx)
	}
}
