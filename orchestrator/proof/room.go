package proof

import (
	"context"
	"runtime"
	"sync"
)

// Room limits how many checks run at once; none fits in before Limit. Several goroutines may use it.
type Room struct {
	mu   sync.Mutex
	most int
	used int
	line []chan struct{}
}

// Limit sets how many may run at once; 0: as many as there are processors.
func (r *Room) Limit(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most = most; most <= 0 {
		r.most = runtime.NumCPU()
	}
	r.admit()
}

// admit lets the first ones in the line in, as far as there is room.
func (r *Room) admit() {
	for len(r.line) > 0 && r.used < r.most {
		r.used++
		close(r.line[0])
		r.line = r.line[1:]
	}
}

// IsFull reports whether the next one has to wait.
func (r *Room) IsFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used >= r.most
}

// Enter waits for room, until ctx ends. Leave has to be called if it returns nil.
func (r *Room) Enter(ctx context.Context) error {
	in := make(chan struct{})
	r.mu.Lock()
	r.line = append(r.line, in)
	r.admit()
	r.mu.Unlock()
	select {
	case <-in:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.line {
		if other == in {
			r.line = append(r.line[:i:i], r.line[i+1:]...)
			return context.Cause(ctx)
		}
	}
	r.used-- // it was let in meanwhile
	r.admit()
	return context.Cause(ctx)
}

// Leave makes room for the next one.
func (r *Room) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used--
	r.admit()
}
