package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"heartbeat/orchestrator/approval"
	webpage "heartbeat/orchestrator/page"
)

// webApprovals are a fleet's approvals, for its page.
type webApprovals struct {
	*web
	waiting, done ledgerView
}

var _ webpage.Approvals = (*webApprovals)(nil)

// ledgerView is what was read of a ledger: an open page asks each second.
type ledgerView struct {
	mu    sync.Mutex
	stamp approval.Stamp
	at    time.Time
	all   []approval.Request
}

// requestsLast is how long requests may be shown that seem unchanged: two changes at the
// same moment have one stamp.
const requestsLast = 10 * time.Second

func (r *ledgerView) read(l approval.Register, list func() ([]approval.Request, error)) ([]approval.Request, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp, now := l.Stamp(), time.Now()
	if stamp == r.stamp && now.Sub(r.at).Abs() < requestsLast {
		return slices.Clone(r.all), nil
	}
	all, err := list()
	if err == nil {
		r.stamp, r.at, r.all = stamp, now, all
	}
	return slices.Clone(all), err
}

// Waiting implements webpage.Approvals.
func (w *webApprovals) Waiting() ([]approval.Request, error) {
	l := approval.Of(w.stateDir)
	return w.waiting.read(l, l.Waiting)
}

// Done implements webpage.Approvals.
func (w *webApprovals) Done() ([]approval.Request, error) {
	l := approval.Of(w.stateDir)
	return w.done.read(l, l.Done)
}

// Find implements webpage.Approvals.
func (w *webApprovals) Find(id string) (approval.Request, error) {
	return approval.Of(w.stateDir).Find(id)
}

// Answer implements webpage.Approvals.
func (w *webApprovals) Answer(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	s, err := w.reached()
	if err != nil {
		return approval.Request{}, err
	}
	return s.AnswerApproval(ctx, id, a)
}
