package ptyrun

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// maxBacklog is how much output may wait for a slow Output.
const maxBacklog = 1 << 20

// stuckAfter is how long one write to Output may take, and the last output after the end.
// After that, output is dropped, so that the child does not wait.
const stuckAfter = 2 * time.Second

// forwarder passes output from the terminal to a writer that may be slow, stuck or
// broken. A slow writer gets everything: add waits for it. A stuck one loses what
// does not fit, with a note where the gap is; a broken one gets nothing more.
type forwarder struct {
	w     io.Writer
	stuck time.Duration // see stuckAfter
	data  chan struct{} // capacity 1: there is something to write, or the end
	room  chan struct{} // capacity 1: something was written
	done  chan struct{} // closed when nothing more will be written

	mu      sync.Mutex
	backlog []byte
	gap     int64     // bytes dropped since the last note
	dropped int64     // bytes dropped in all
	since   time.Time // the last time that the writer took some, or had nothing to take
	failed  bool
	ended   bool
}

func newForwarder(w io.Writer, stuck time.Duration) *forwarder {
	f := &forwarder{
		w: w, stuck: stuck, failed: w == nil,
		data: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if w == nil {
		close(f.done)
	} else {
		go f.run()
	}
	return f
}

// add takes a copy of p. It waits while the backlog is full and the writer is not
// stuck.
func (f *forwarder) add(p []byte) {
	for {
		wait, taken := f.try(p)
		if taken {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-f.room:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// try takes p or drops it, or says how long to wait for room.
func (f *forwarder) try(p []byte) (wait time.Duration, taken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		if f.w != nil {
			f.dropped += int64(len(p))
		}
		return 0, true
	}
	if len(f.backlog)+len(p) > maxBacklog {
		if wait = f.stuck - time.Since(f.since); wait > 0 {
			return wait, false
		}
		f.gap += int64(len(p))
		f.dropped += int64(len(p))
		return 0, true
	}
	if len(f.backlog) == 0 {
		f.since = time.Now()
	}
	f.note()
	f.backlog = append(f.backlog, p...)
	notify(f.data)
	return 0, true
}

// note says where output is missing, before what follows or at the end.
func (f *forwarder) note() {
	if f.gap > 0 {
		f.backlog = fmt.Appendf(f.backlog, "\r\n[heartbeat: %d bytes of output are missing here]\r\n", f.gap)
		f.gap = 0
	}
}

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// close lets the writer get what is left; done is closed when it has.
func (f *forwarder) close() {
	f.mu.Lock()
	f.note()
	f.ended = true
	f.mu.Unlock()
	notify(f.data)
}

func (f *forwarder) lost() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}

func (f *forwarder) run() {
	defer close(f.done)
	for range f.data {
		for {
			chunk, ended := f.take()
			if len(chunk) == 0 {
				if ended {
					return
				}
				break
			}
			if !f.write(chunk) {
				return
			}
		}
	}
}

// take removes the whole backlog. The terminal may fill a new one meanwhile.
func (f *forwarder) take() (chunk []byte, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	chunk, f.backlog = f.backlog, nil
	f.since = time.Now()
	notify(f.room)
	return chunk, f.ended
}

// write writes a chunk in pieces, so that a writer that takes little at a time is
// seen to make progress.
func (f *forwarder) write(chunk []byte) bool {
	for len(chunk) > 0 {
		n, err := f.w.Write(chunk[:min(len(chunk), 16<<10)])
		chunk = chunk[n:]
		if err != nil {
			f.fail(len(chunk))
			return false
		}
		f.mu.Lock()
		f.since = time.Now()
		f.mu.Unlock()
	}
	return true
}

func (f *forwarder) fail(unwritten int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
	f.dropped += int64(unwritten + len(f.backlog))
	f.backlog = nil
	notify(f.room)
}
