package orchestrator

import (
	"context"
	"sync"
	"time"
)

// writeBehind carries out writes that nobody waits for: of several for one
// file only the last. Asking for one touches no disk, so it may be done with a
// lock held.
type writeBehind struct {
	// delay is from asking to writing, so that several become one.
	delay time.Duration
	asked chan struct{}

	mu     sync.Mutex
	done   *sync.Cond        // a write has ended
	writes map[string]func() // :: path → the write that is to be done
	order  []string          // the paths, the longest asked for first
	busy   map[string]bool   // the paths that are being written
}

// hurry is how many files are written at once when somebody waits after all.
const hurry = 32

func newWriteBehind(delay time.Duration) *writeBehind {
	w := &writeBehind{
		delay: delay, asked: make(chan struct{}, 1), writes: map[string]func(){}, busy: map[string]bool{},
	}
	w.done = sync.NewCond(&w.mu)
	return w
}

// put asks for a write. It takes the place of one that is not done yet.
func (w *writeBehind) put(path string, write func()) {
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

// run writes, one file after the other, until ctx ends, and then what is left.
func (w *writeBehind) run(ctx context.Context) {
	defer w.flush()
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

// flush returns when everything that was asked for is written.
func (w *writeBehind) flush() {
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

// one does the write that was asked for first, and reports whether there was
// one. Two writes of one file never overlap.
func (w *writeBehind) one() bool {
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

// doLocked writes a file, without the lock meanwhile.
func (w *writeBehind) doLocked(path string) {
	write := w.writes[path]
	delete(w.writes, path)
	w.busy[path] = true
	w.mu.Unlock()
	write()
	w.mu.Lock()
	delete(w.busy, path)
	w.done.Broadcast()
}

// writeFiles writes what is to be read by others until the function that it
// returns is called, and then what is left of it.
func (s *Scheduler) writeFiles() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for _, w := range []*writeBehind{s.published, s.records} {
		writers.Go(func() { w.run(ctx) })
	}
	return func() {
		cancel()
		writers.Wait()
	}
}
