package session

import (
	"context"
	"time"

	"heartbeat/hook"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

// noteEvery is how often keys that a person presses are noted in the record.
const noteEvery = time.Second

// openDesk lets people join the session. Without it the session runs just the
// same. It holds the session lock, so a socket that is there is nobody's.
func (s *shim) openDesk() {
	if s.spec.Socket == "" {
		return
	}
	desk, err := attach.Listen(s.spec.Socket, attach.Config{
		Agent: s.spec.Agent, Session: s.spec.Session, Log: s.log,
		Size: attach.Size{Rows: ptyrun.DefaultRows, Cols: ptyrun.DefaultCols},
	})
	if err != nil {
		s.log.Warn("nobody can join the session", "err", err)
		return
	}
	s.desk = desk
}

// peopleChanged tells when somebody has come, typed or left.
func (s *shim) peopleChanged() <-chan struct{} {
	if s.desk == nil {
		return nil
	}
	return s.desk.Changed()
}

// notePeople keeps who is at the terminal in the record, for the hooks: while
// a person types nothing is handed over.
func (s *shim) notePeople(ctx context.Context, now time.Time) {
	if s.desk == nil {
		return
	}
	n, typed := s.desk.People()
	if n == s.record.Attached && !typed.After(s.record.TypedAt) {
		return
	}
	// The first key counts at once, the last of many within noteEvery.
	if n == s.record.Attached && now.Sub(s.noted) < noteEvery && typed.Sub(s.record.TypedAt) < noteEvery {
		return
	}
	s.noted = now
	s.update(ctx, func(r *hook.Record) { r.Attached, r.TypedAt = n, typed })
}
