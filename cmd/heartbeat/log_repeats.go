package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A log repeats the same failure after repeatFirst, and then each time after twice as
// long, up to repeatLast: a failure may last for weeks. One that did not come for
// repeatLast is new.
const (
	repeatFirst = time.Minute
	repeatLast  = time.Hour
)

// mostRepeats limits how many failures are remembered.
const mostRepeats = 1000

// repeats passes records on, except failures with the same reason soon after the last one:
// a state directory that is full or read-only fails at each event. The next record says how
// many were left out.
type repeats struct {
	slog.Handler
	attrs string // of the logger, rendered
	said  *saidBefore
}

// saidBefore is shared by the loggers that were derived from one.
type saidBefore struct {
	mu  sync.Mutex
	all map[string]*repeat // :: message and attributes
}

type repeat struct {
	seen, said time.Time
	after      time.Duration // said, it is said again
	since      int           // how often it was left out since
}

func newRepeats(h slog.Handler) *repeats {
	return &repeats{Handler: h, said: &saidBefore{all: map[string]*repeat{}}}
}

// WithAttrs implements slog.Handler.
func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		with.attrs += " " + a.String()
	}
	return &with
}

// WithGroup implements slog.Handler.
func (h *repeats) WithGroup(name string) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithGroup(name)
	with.attrs += " " + name + "."
	return &with
}

// Handle implements slog.Handler.
func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || !strings.HasPrefix(r.Message, "cannot ") {
		return h.Handler.Handle(ctx, r)
	}
	key := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		key += " " + a.String()
		return true
	})
	since, again := h.said.again(key, r.Time)
	if again {
		return nil
	}
	if since > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("also", since))
	}
	return h.Handler.Handle(ctx, r)
}

// again reports whether something was logged so lately that it is left out, otherwise how
// many times it was left out since.
func (s *saidBefore) again(key string, now time.Time) (since int, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[key]
	if m == nil {
		if len(s.all) >= mostRepeats {
			clear(s.all)
		}
		m = &repeat{}
		s.all[key] = m
	}
	if now.Sub(m.seen) > repeatLast {
		m.after = repeatFirst / 2 // it is new
	}
	m.seen = now
	if now.Sub(m.said) < m.after {
		m.since++
		return 0, true
	}
	since = m.since
	m.said, m.after, m.since = now, min(2*m.after, repeatLast), 0
	return since, false
}
