package sources

import (
	"context"
	"sync"
)

// Crew does items with a bounded number of goroutines, and has one more for
// each item that is slow, so that those hold up nobody else. It is guarded by
// its owner's lock: who calls Give and Start holds it, and it is held when Do
// is called, which releases it while it waits.
type Crew[T any] struct {
	Most int // items at once, but for slow ones
	Lock *sync.Mutex
	Do   func(ctx context.Context, item T)

	group   sync.WaitGroup
	ready   []T
	working int
}

// Give hands over an item. A slow one is begun at once, the others by Start.
// Once ctx has ended nothing is begun: what is left is done when Start is called
// with another one.
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

// Start begins with what was given.
func (c *Crew[T]) Start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for range min(c.Most-c.working, len(c.ready)) {
		c.working++
		c.group.Go(func() { c.work(ctx) })
	}
}

// Wait waits, without the lock, until nothing is being done.
func (c *Crew[T]) Wait() { c.group.Wait() }

// work does ready items until there is none.
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
