package main

import (
	"context"
	"slices"
	"sync"

	"heartbeat/orchestrator/approval"
	webpage "heartbeat/orchestrator/page"
	"heartbeat/orchestrator/store"
)

// webApprovals are a fleet's approvals, for its page.
type webApprovals struct {
	*web
	waiting, done requestsView
}

var _ webpage.Approvals = (*webApprovals)(nil)

// requestsView is what was read of requests: an open page asks each second.
type requestsView struct {
	mu      sync.Mutex
	changes uint64
	all     []approval.Request
}

// read returns them. During a run it reads them again only after a change.
func (r *requestsView) read(w *web, list func(*store.View) ([]approval.Request, error)) ([]approval.Request, error) {
	changes := uint64(0)
	if s := w.now.Load(); s != nil {
		changes = s.ApprovalsChanges() + 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if changes == 0 || changes != r.changes {
		all, err := store.Get(context.Background(), w.store.Reader, list)
		if err != nil {
			return nil, err
		}
		r.changes, r.all = changes, all
	}
	return slices.Clone(r.all), nil
}

// Waiting implements webpage.Approvals.
func (w *webApprovals) Waiting() ([]approval.Request, error) {
	return w.waiting.read(w.web, approval.Waiting)
}

// Done implements webpage.Approvals.
func (w *webApprovals) Done() ([]approval.Request, error) {
	return w.done.read(w.web, approval.Done)
}

// Find implements webpage.Approvals.
func (w *webApprovals) Find(id string) (approval.Request, error) {
	return store.Get(context.Background(), w.store.Reader, func(v *store.View) (approval.Request, error) { return approval.Find(v, id) })
}

// Answer implements webpage.Approvals.
func (w *webApprovals) Answer(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	s, err := w.reached()
	if err != nil {
		return approval.Request{}, err
	}
	return s.AnswerApproval(ctx, id, a)
}
