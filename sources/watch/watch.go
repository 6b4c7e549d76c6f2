// Package watch fires when files appear or change.
//
// Notifications of the system are hints only: they say where to look. What
// fires is decided by comparing a file's content with what was seen of it, so
// that a touch, a file written anew with the same content or the dance of an
// editor's temporary file fire nothing, and a notification that was lost (an
// overflow, a directory made again, a file system without notifications) only
// costs time: every minute all is compared.
//
// It writes nothing: what was seen is handed to the caller.
package watch

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"heartbeat/sources"
)

const (
	defaultDebounce = 500 * time.Millisecond
	// rescanEvery is when all is compared without a hint; blindEvery where
	// the system gives none. A scan that takes long is made less often:
	// after scanShare times what it took.
	rescanEvery, blindEvery = time.Minute, 5 * time.Second
	scanShare               = 100

	retryBase, retryLimit = time.Second, time.Minute
	// workers bounds the triggers that are looked at at the same time.
	workers = 8
)

// Watcher serves many watch triggers with one instance of the system's
// notifications: those are limited to 128 a user. Its methods may be called
// from any goroutine.
type Watcher struct {
	changed chan struct{}

	mu      sync.Mutex
	targets map[string]*target
	wake    time.Time // when the loop looks next
	hints   *hints    // nil while not running, or where there are none
	ready   []*target
	working int
}

// target is a trigger of a watcher. While busy, its worker owns seen and
// failed; the rest is guarded by Watcher.mu.
type target struct {
	Trigger
	patterns []pattern
	seen     sources.Seen
	failed   map[string]string // what was complained about: path ("": notifications, ".": a directory) → why

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
	return &Watcher{changed: make(chan struct{}, 1), targets: map[string]*target{}}
}

// Set adds the trigger named key or replaces it. The error is about its
// patterns. A directory that is not there is no error: it may come.
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
		failed: map[string]string{}, dirty: map[string]time.Time{}, rescan: time.Now(),
	}
	w.notify()
	return nil
}

// Remove takes a trigger out. A fire that is being emitted goes on.
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
// emitted. When the system gives no notifications it says so to problem, which
// may be nil, and works without. A watcher can be run once at a time.
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
	w.loop(ctx)
}

func (w *Watcher) loop(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.changed:
		}
		timer.Reset(w.step(ctx, &group))
	}
}

func (w *Watcher) stopHints(h *hints) {
	w.mu.Lock()
	w.hints = nil
	w.mu.Unlock()
	h.close()
}

// step hands what is due to workers and returns how long to wait.
func (w *Watcher) step(ctx context.Context, group *sync.WaitGroup) time.Duration {
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
		if t.Slow && ctx.Err() == nil {
			group.Go(func() { w.workAlone(ctx, t) })
			continue
		}
		w.ready = append(w.ready, t)
	}
	for range min(workers-w.working, len(w.ready)) {
		w.working++
		group.Go(func() { w.work(ctx) })
	}
	return max(0, w.wake.Sub(now))
}

// next returns when t wants to be looked at.
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

// work looks at targets that are ready until there is none.
func (w *Watcher) work(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ready) > 0 && ctx.Err() == nil {
		t := w.ready[0]
		w.ready = w.ready[1:]
		if !t.removed {
			w.look(ctx, t)
		}
	}
	w.working--
}

// workAlone looks at a target that is slow.
func (w *Watcher) workAlone(ctx context.Context, t *target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.removed {
		w.look(ctx, t)
	}
}

// look compares what is to be compared of a target, without w.mu meanwhile.
// The caller holds it.
func (w *Watcher) look(ctx context.Context, t *target) {
	now := time.Now()
	l := &look{w: w, t: t, now: now, full: !t.rescan.After(now), hinted: map[string]bool{}, waiting: map[string]bool{}}
	for rel, at := range t.dirty {
		if at.After(now) {
			l.waiting[rel] = true
			continue
		}
		l.hinted[rel] = true
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

// finish takes the outcome of a look into t's plan. The caller holds w.mu.
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
		retry := sources.Backoff(t.failures, retryBase, retryLimit, rand.Float64())
		t.notBefore = now.Add(retry)
		t.rescan = t.notBefore // finds all that has not fired
		if t.Failed != nil && ctx.Err() == nil {
			w.mu.Unlock()
			t.Failed(now, err, retry)
			w.mu.Lock()
		}
	case l.full:
		t.failures = 0
		every := rescanEvery
		if l.blind != nil {
			every = blindEvery
		}
		t.rescan = earlier(t.rescan, now.Add(max(every, scanShare*now.Sub(l.now))))
	default:
		t.failures = 0
	}
	w.notify()
}

// notify makes Run look again.
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
