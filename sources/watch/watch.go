// Package watch fires when files appear or change.
//
// The system's notifications are only hints: they say where to look. A file fires
// when its content differs from what was last seen. So a touch, rewriting the same
// content, or an editor's temporary files fire nothing, and a lost notification (an
// overflow, a recreated directory, a file system without notifications) only costs
// time: all files are compared every minute.
//
// It writes nothing: what was seen is handed to the caller.
package watch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"heartbeat/sources"
)

const (
	defaultDebounce = 500 * time.Millisecond
	// rescanEvery is how often all files are compared without a hint; blindEvery
	// where the system gives no hints. A slow scan is repeated less often: after
	// scanShare times its duration.
	rescanEvery, blindEvery = time.Minute, 5 * time.Second
	scanShare               = 100

	retryBase, retryLimit = time.Second, time.Minute
	// workers bounds how many triggers are checked at the same time.
	workers = 8
)

// Watcher serves many watch triggers with one inotify instance, because a user has
// only 128. Its methods may be called from any goroutine.
type Watcher struct {
	changed chan struct{}
	retry   time.Duration // the first wait after a failure

	mu      sync.Mutex
	targets map[string]*target
	wake    time.Time // when the loop looks next
	hints   *hints    // nil while not running, or where there are none
	crew    sources.Crew[*target]
}

// target is a trigger of a watcher. While busy, its worker owns seen, failed and
// heldSince; the rest is guarded by Watcher.mu.
type target struct {
	Trigger
	patterns []pattern
	seen     sources.Seen
	// failed is what cannot be watched as it should: path ("": notifications, ".":
	// directories, "/": folders that are not there) → why. What can be read again is taken
	// out, and nothing else ends it.
	failed map[string]error
	began  time.Time
	exist  map[string]bool // folders of patterns that were there since it began
	told   string          // what was reported of it last
	// heldSince is when a batch began to wait for files that are still being written.
	heldSince time.Time

	dirty     map[string]time.Time // path → when to look at it
	rescan    time.Time
	notBefore time.Time // after a failure
	failures  int
	busy      bool
	removed   bool
}

// New returns a watcher without triggers.
//
// A pattern is a glob (*, ?, [a-z], {a,b}, and ** for any number of
// directories) relative to the agent's directory. It matches regular files;
// symbolic links are neither matched nor followed. Files in a directory .git,
// .heartbeat or .claude match only patterns that name it.
func New() *Watcher {
	w := &Watcher{changed: make(chan struct{}, 1), retry: retryBase, targets: map[string]*target{}}
	w.crew = sources.Crew[*target]{Most: workers, Lock: &w.mu, Do: w.look}
	return w
}

// Set adds the trigger named key or replaces it. The error is about its patterns. A
// missing directory is not an error: it may be created later. One that was never there is
// told as a failure after an hour.
func (w *Watcher) Set(key string, t Trigger) error {
	patterns, err := t.compile()
	if err != nil {
		return err
	}
	if t.Debounce <= 0 {
		t.Debounce = defaultDebounce
	}
	seen := maps.Clone(t.Seen)
	if seen == nil {
		seen = sources.Seen{}
	}
	w.Remove(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.targets[key] = &target{
		Trigger: t, patterns: patterns, seen: seen,
		failed: map[string]error{}, dirty: map[string]time.Time{}, rescan: time.Now(), began: time.Now(), exist: map[string]bool{},
	}
	w.notify()
	return nil
}

// Remove removes a trigger. A fire that is being emitted continues.
func (w *Watcher) Remove(key string) {
	w.mu.Lock()
	t, h := w.targets[key], w.hints
	if t == nil {
		w.mu.Unlock()
		return
	}
	t.removed = true
	delete(w.targets, key)
	var unused []string
	if h != nil {
		unused = h.dropLocked(t)
	}
	w.mu.Unlock()
	for _, dir := range unused {
		h.remove(dir)
	}
}

// Run fires triggers until ctx ends, then waits for the fires that are being
// emitted. When the system provides no notifications, Run reports that to problem,
// which may be nil, and works without them. Only one Run may be active at a time.
func (w *Watcher) Run(ctx context.Context, problem func(error)) {
	h, err := newHints(w)
	if err != nil && problem != nil {
		problem(err)
	}
	if h != nil {
		w.mu.Lock()
		w.hints = h
		w.mu.Unlock()
		var drain sync.WaitGroup
		drain.Go(h.drain)
		defer drain.Wait()
		defer w.stopHints(h)
	}
	w.crew.Serve(ctx, w.changed, w.step)
}

func (w *Watcher) stopHints(h *hints) {
	w.mu.Lock()
	w.hints = nil
	w.mu.Unlock()
	h.close()
}

// step hands what is due to the crew and returns how long to wait.
func (w *Watcher) step(ctx context.Context) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.wake = now.Add(rescanEvery)
	for _, t := range w.targets {
		if t.busy {
			continue
		}
		if at := t.next(); at.After(now) {
			w.wake = earlier(w.wake, at)
			continue
		}
		t.busy = true
		w.crew.Give(ctx, t, t.Slow)
	}
	w.crew.Start(ctx)
	return max(0, w.wake.Sub(now))
}

// next returns when t must be checked next.
func (t *target) next() time.Time {
	at := t.rescan
	for _, d := range t.dirty {
		at = earlier(at, d)
	}
	if at.Before(t.notBefore) {
		return t.notBefore
	}
	return at
}

// look compares a target's files and releases w.mu meanwhile. The caller holds it.
func (w *Watcher) look(ctx context.Context, t *target) {
	if t.removed {
		return
	}
	now := time.Now()
	l := &look{w: w, t: t, began: now, full: !t.rescan.After(now), hinted: map[string]time.Time{}, waiting: map[string]time.Time{}}
	for rel, at := range t.dirty {
		if at.After(now) {
			l.waiting[rel] = at
			continue
		}
		l.hinted[rel] = at
		delete(t.dirty, rel)
	}
	if l.full {
		t.rescan = now.Add(scanShare * rescanEvery) // until finish, or a hint, knows better
	}
	w.mu.Unlock()
	err := l.run(ctx)
	w.mu.Lock()
	w.finish(ctx, l, err)
}

// finish updates t's plan with the outcome of a look. The caller holds w.mu.
func (w *Watcher) finish(ctx context.Context, l *look, err error) {
	t, now := l.t, time.Now()
	t.busy = false
	for rel, at := range l.again {
		if _, ok := t.dirty[rel]; !ok {
			t.dirty[rel] = at
		}
	}
	switch {
	case err != nil:
		t.failures++
		retry := sources.Backoff(t.failures, w.retry, retryLimit, rand.Float64())
		t.notBefore = now.Add(retry)
		t.rescan = t.notBefore // finds all that has not fired
		if t.told = ""; ctx.Err() == nil {
			w.tell(t, now, err, retry)
		}
	case l.full:
		t.failures = 0
		every := rescanEvery
		if l.blind != nil {
			every = blindEvery
		}
		t.rescan = earlier(t.rescan, now.Add(max(every, scanShare*now.Sub(l.began))))
		w.tellStanding(t, now)
	default:
		t.failures = 0
		w.tellStanding(t, now)
	}
	w.notify()
}

// tellStanding reports what cannot be watched after a look that has compared all it could, if
// that is something else than before; or that there is nothing.
func (w *Watcher) tellStanding(t *target, now time.Time) {
	switch why := standing(t.failed); {
	case why == nil:
		t.told = ""
		w.tell(t, now, nil, 0)
	case why.Error() != t.told:
		t.told = why.Error()
		w.tell(t, now, why, rescanEvery)
	}
}

// tell calls Failed or, with nil, Succeeded, without w.mu.
func (w *Watcher) tell(t *target, now time.Time, err error, retry time.Duration) {
	w.mu.Unlock()
	defer w.mu.Lock()
	switch {
	case err == nil && t.Succeeded != nil:
		t.Succeeded()
	case err != nil && t.Failed != nil:
		t.Failed(now, err, retry)
	}
}

// standing names the first of what cannot be watched, and counts the others; nil: there is
// nothing.
func standing(failed map[string]error) error {
	var files denied
	for key, err := range failed {
		if key != "" && key != "." && key != "/" {
			files.add(key, err)
		}
	}
	return joined(failed["/"], failed["."], files.why("cannot be read"), failed[""])
}

// joined is errors.Join on one line.
func joined(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case err != nil && all != nil:
			all = fmt.Errorf("%w; %w", all, err)
		case err != nil:
			all = err
		}
	}
	return all
}

// notify makes Run check again.
func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
