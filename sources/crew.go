package sources

import (
	"context"
	"sync"
	"time"
)

// Crew processes items with a bounded number of goroutines, and starts one more for
// each slow item, so that slow items do not delay the others. Its owner's lock
// guards it: callers of Give and Start hold the lock. The lock is also held when Do
// is called, and Do releases it while it waits.
type Crew[T any] struct {
	Most int // items at once, but for slow ones
	Lock *sync.Mutex
	Do   func(ctx context.Context, item T)

	group   sync.WaitGroup
	ready   []T
	working int
}

// Serve calls step at once, whenever something changes, and after the time that
// step returned, until ctx ends. Then it waits for the items that are being
// processed.
func (c *Crew[T]) Serve(ctx context.Context, changed <-chan struct{}, step func(context.Context) time.Duration) {
	defer c.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-changed:
		}
		timer.Reset(step(ctx))
	}
}

// Give adds an item. A slow one starts at once, the others at Start. After ctx has
// ended nothing is started: the remaining items run when Start is called with
// another context.
func (c *Crew[T]) Give(ctx context.Context, item T, slow bool) {
	if !slow || ctx.Err() != nil {
		c.ready = append(c.ready, item)
		return
	}
	c.group.Go(func() {
		c.Lock.Lock()
		defer c.Lock.Unlock()
		c.Do(ctx, item)
	})
}

// Start starts the items that were given.
func (c *Crew[T]) Start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for range min(c.Most-c.working, len(c.ready)) {
		c.working++
		c.group.Go(func() { c.work(ctx) })
	}
}

// Wait waits, without the lock, until no item is being processed.
func (c *Crew[T]) Wait() { c.group.Wait() }

// work processes ready items until there are none.
func (c *Crew[T]) work(ctx context.Context) {
	c.Lock.Lock()
	defer c.Lock.Unlock()
	for len(c.ready) > 0 && ctx.Err() == nil {
		item := c.ready[0]
		c.ready = c.ready[1:]
		c.Do(ctx, item)
	}
	c.working--
}
