package main

import (
	"io"
	"sync"
	"time"
)

// Limits of a log that is not read: how many bytes wait for its reader, and how
// long the end of a run waits.
const (
	logQueueLimit = 1 << 20
	logQueueEnd   = time.Second
)

// logQueue stands between a run and the file that it logs to, so that a reader who
// has stopped (a pager, Ctrl-S, a pipe) stops no agent. What does not fit is
// dropped, and counted once there is room again.
type logQueue struct {
	w       io.Writer
	dropped func(lines int) []byte // the line that says so

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	lost    int
	writing bool
}

func newLogQueue(w io.Writer, dropped func(lines int) []byte) *logQueue {
	q := &logQueue{w: w, dropped: dropped}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Write takes a record. It never waits and never fails.
func (q *logQueue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(p) > logQueueLimit {
		q.lost++
		return len(p), nil
	}
	q.waiting = append(q.waiting, p...)
	if !q.writing {
		q.writing = true
		go q.drain()
	}
	return len(p), nil
}

// drain writes until nothing waits. A file that cannot be written to is no
// reason to stop: there is nowhere to say so.
func (q *logQueue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		data := q.waiting
		if q.lost > 0 {
			data = append(data, q.dropped(q.lost)...)
		}
		q.waiting, q.lost = nil, 0
		q.mu.Unlock()
		_, _ = q.w.Write(data)
		q.mu.Lock()
	}
	q.writing = false
	q.changed.Broadcast()
}

// flush returns when everything is written, or when limit is over.
func (q *logQueue) flush(limit time.Duration) {
	end := time.Now().Add(limit)
	defer time.AfterFunc(limit, q.changed.Broadcast).Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.writing && time.Now().Before(end) {
		q.changed.Wait()
	}
}
