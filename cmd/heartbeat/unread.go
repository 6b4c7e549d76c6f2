package main

import (
	"io"
	"sync/atomic"
	"time"
)

// readerPatience is how long the end of a run waits for a reader that takes nothing.
const readerPatience = 2 * time.Second

// readChunk is how much is written at once: what goes into a pipe whole, so that a slow
// reader is seen to take something.
const readChunk = 4096

// outlet is a file whose reader may have stopped (Ctrl-S, a pager, a collector of logs):
// a write to it waits, and others see since when.
type outlet struct {
	w     io.Writer
	since atomic.Pointer[time.Time] // when the write that goes on got on last; nil: none goes on
}

// Write implements io.Writer.
func (a *outlet) Write(p []byte) (n int, err error) {
	defer a.since.Store(nil)
	for n < len(p) && err == nil {
		a.since.Store(new(time.Now()))
		var k int
		k, err = a.w.Write(p[n:min(n+readChunk, len(p))])
		n += k
	}
	return n, err
}

// stuck reports whether a write waits for its reader for longer than patience.
func (a *outlet) stuck(patience time.Duration) bool {
	since := a.since.Load()
	return since != nil && time.Since(*since) > patience
}

// finishUnheld is finish for a run: nobody who has stopped reading what it prints keeps
// its process.
func (o *output) finishUnheld(r result, err error, to ...*outlet) int {
	done := make(chan int, 1)
	go func() { done <- o.finish(r, err) }()
	look := time.NewTicker(readerPatience / 20)
	defer look.Stop()
	for {
		select {
		case status := <-done:
			return status
		case <-look.C:
		}
		for _, a := range to {
			if a.stuck(readerPatience) {
				return statusOf(err)
			}
		}
	}
}
