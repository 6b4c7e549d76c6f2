package page

import (
	"context"
	"sync"
	"time"
)

// kept caches slow results by name: a result is read once for all browsers, and again only after
// lasts.
type kept[T any] struct {
	lasts time.Duration

	mu sync.Mutex
	of map[string]*reading[T]
}

type reading[T any] struct {
	mu  sync.Mutex // held while it is read
	at  time.Time
	is  T
	err error
}

// mostKept is how many results are kept.
const mostKept = 32

func (k *kept[T]) get(ctx context.Context, name string, read func() (T, error)) (T, error) {
	r := k.reading(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) > k.lasts {
		is, err := read()
		if ctx.Err() != nil { // that may be why it failed
			return is, err
		}
		r.is, r.err, r.at = is, err, time.Now()
	}
	return r.is, r.err
}

// forget drops all results.
func (k *kept[T]) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of = nil
}

// reading returns the cached result of a name, in place of another one if there are too many.
func (k *kept[T]) reading(name string) *reading[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]*reading[T]{}
	}
	r := k.of[name]
	if r != nil {
		return r
	}
	for other := range k.of {
		if len(k.of) < mostKept {
			break
		}
		delete(k.of, other) // whichever: it is read again
	}
	r = &reading[T]{}
	k.of[name] = r
	return r
}
