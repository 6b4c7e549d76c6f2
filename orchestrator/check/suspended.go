package check

import (
	"context"
	"errors"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Tend carries out what people have answered to the suspended entries of an agent: a yes ends
// them, after anything else they return to the front of the queue. Judged is called for each.
// Nothing is run.
func (c *Checker) Tend(ctx context.Context, of Case) error {
	a := of.Agent()
	all, err := store.Get(ctx, c.opt.Store.Reader, func(v *store.View) ([]queue.Entry, error) { return entries.Suspended(v, of.Key) })
	for _, e := range all {
		s, failed := c.subjectOf(ctx, a, func(v *store.View) (*queue.Entry, error) { return entries.Get(v, e.Key) })
		if failed == nil && s != nil && s.State == queue.Suspended {
			r := run{Checker: c, Case: of}
			failed = r.tend(ctx, s)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (r *run) tend(ctx context.Context, s *subject) error {
	switch {
	case s.standing() != nil:
		return r.carryOut(ctx, s, *s.standing())
	case s.until == nil:
		return r.judge(ctx, s, s.needless(), nil)
	case s.passed():
		return r.approved(ctx, s)
	}
	v := s.verdict()
	v.Why, v.Output = "what it has to pass was changed", "While this waited for approval, what it has to pass was changed."
	v.Said, v.At = v.Output, time.Now()
	return r.judge(ctx, s, v, nil)
}

// Unneeded returns why nobody needs the answer to a request of an agent any more, or "": with or
// without a scheduler, this is the one place that knows.
func Unneeded(v *store.View, a *config.Agent, r approval.Request) (why string, err error) {
	if r.Entry == "" {
		return "", nil // it was asked in a turn of a person's
	}
	e, err := entries.Find(v, r.Key, r.Entry)
	switch {
	case err != nil:
		return "", err
	case r.Name == "" && e != nil && (e.State == queue.Dead || e.State == queue.Dropped):
		return "its prompt was given up", nil
	case r.Name == "":
		return "", nil
	case e == nil || e.State != queue.Checking && e.State != queue.Suspended:
		return notNeeded, nil
	}
	s, err := read(v, a, *e)
	if err != nil {
		return "", err
	}
	if s.until == nil || !s.passed() || s.shown() != r.About || !slices.Contains(s.until.Approve, r.Name) {
		return notNeeded, nil
	}
	return "", nil
}

const notNeeded = "nobody has to agree to that any more"
