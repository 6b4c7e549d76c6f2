package state

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Behind carries out writes that mostly nobody waits for: of several for one file only the
// last. Asking for one touches no disk, so the caller may hold a lock.
type Behind struct {
	// delay is the time from asking to writing, so that several become one.
	delay time.Duration
	asked chan struct{}

	mu     sync.Mutex
	done   *sync.Cond        // a write has ended
	writes map[string]func() // :: path → the write that is to be done
	order  []string          // the paths, the oldest request first
	busy   map[string]bool   // the paths that are being written
}

// hurry is how many files are written at once when somebody does wait.
const hurry = 32

// NewBehind returns one that writes this long after it was asked, once Run is
// called.
func NewBehind(delay time.Duration) *Behind {
	w := &Behind{
		delay: delay, asked: make(chan struct{}, 1), writes: map[string]func(){}, busy: map[string]bool{},
	}
	w.done = sync.NewCond(&w.mu)
	return w
}

// Put asks for a write. It replaces a pending one for the same file.
func (w *Behind) Put(path string, write func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writes[path] == nil {
		w.order = append(w.order, path)
	}
	w.writes[path] = write
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// Run writes, one file after the other, until ctx ends, and then what is left.
func (w *Behind) Run(ctx context.Context) {
	defer w.Flush()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.delay):
		}
		for ctx.Err() == nil && w.one() {
		}
	}
}

// Flush returns when everything that was asked for is written.
func (w *Behind) Flush() {
	w.mu.Lock()
	n := min(hurry, len(w.order))
	w.mu.Unlock()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for w.one() {
			}
		})
	}
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.busy) > 0 {
		w.done.Wait()
	}
}

// Now returns when what was asked for a file is written, without the delay.
func (w *Behind) Now(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy[path] || w.writes[path] != nil {
		if w.busy[path] {
			w.done.Wait()
			continue
		}
		w.order = slices.DeleteFunc(w.order, func(p string) bool { return p == path })
		w.doLocked(path)
	}
}

// one does the write that was asked for first, and reports whether there was one.
// Two writes of one file never overlap.
func (w *Behind) one() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.order) > 0 {
		for i, path := range w.order {
			if w.busy[path] {
				continue
			}
			w.order[0], w.order[i] = path, w.order[0]
			w.order = w.order[1:]
			w.doLocked(path)
			return true
		}
		w.done.Wait()
	}
	return false
}

// doLocked writes a file, and releases the lock meanwhile.
func (w *Behind) doLocked(path string) {
	write := w.writes[path]
	delete(w.writes, path)
	w.busy[path] = true
	w.mu.Unlock()
	write()
	w.mu.Lock()
	delete(w.busy, path)
	w.done.Broadcast()
}
