package state

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOnlyTheLastWriteOfAFileIsDone also checks that it is done within delay,
// though nobody asks any more, and that the end of the run waits for the rest.
func TestOnlyTheLastWriteOfAFileIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewBehind(50 * time.Millisecond)
		var mu sync.Mutex
		var wrote []string
		write := func(what string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				wrote = append(wrote, what)
			}
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		for i := range 3 {
			w.Put("a", write(fmt.Sprint("a", i)))
			w.Put("b", write(fmt.Sprint("b", i)))
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		w.Put("c", write("c"))
		end()
		<-done
		if want := []string{"a2", "b2", "c"}; !slices.Equal(wrote, want) {
			t.Errorf("wrote %q, want %q", wrote, want)
		}
	})
}

// TestWhoCannotWaitHasOneFileWritten, after a write of it that is under way.
func TestWhoCannotWaitHasOneFileWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewBehind(time.Hour)
		var wrote []string
		w.Now("a")
		for _, path := range []string{"a", "b"} {
			w.Put(path, func() { time.Sleep(time.Second); wrote = append(wrote, path) })
		}
		go w.Now("a")
		synctest.Wait()
		w.Put("a", func() { wrote = append(wrote, "a again") })
		w.Now("a")
		if want := []string{"a", "a again"}; !slices.Equal(wrote, want) {
			t.Errorf("wrote %q, want %q", wrote, want)
		}
	})
}

// TestWritesOfOneFileDoNotOverlap: what was asked for while a file is being
// written comes after it, and flush waits for both.
func TestWritesOfOneFileDoNotOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewBehind(0)
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		var mu sync.Mutex
		var order []string
		slow := func(name string) func() {
			return func() {
				mu.Lock()
				order = append(order, name+" begins")
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				order = append(order, name+" ends")
				mu.Unlock()
			}
		}
		w.Put("a", slow("first"))
		time.Sleep(100 * time.Millisecond)
		w.Put("a", slow("second"))
		w.Flush()
		mu.Lock()
		if want := []string{"first begins", "first ends", "second begins", "second ends"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
		mu.Unlock()
		end()
		all.Wait()
	})
}
