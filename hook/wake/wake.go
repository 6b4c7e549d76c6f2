// Package wake wakes who waits for changes of a queue's files.
package wake

import (
	"os"
	"time"

	"heartbeat/hook/durable"
)

const (
	// Glance is how often it wakes without a notification: inotify does not see changes from
	// other hosts, and a line without a newline becomes an entry just by staying quiet.
	Glance = 5 * time.Second
	// breath is the minimum time between two looks, for when a writer streams.
	breath = 10 * time.Millisecond
	// poll is how often the files are checked where inotify is missing.
	poll = 250 * time.Millisecond
)

// Watch wakes its owner when one of some files has changed.
type Watch struct {
	paths   []string
	changed <-chan struct{} // of files; nil: they are looked at every poll
	gone    <-chan struct{} // who waits has
	stop    func()
	last    time.Time // of the last look
	seen    []durable.Stamp
}

// Files watches files until who waits for them has gone.
func Files(gone <-chan struct{}, queue ...string) *Watch {
	w := &Watch{paths: queue, gone: gone, seen: make([]durable.Stamp, len(queue))}
	w.changed, w.stop = notify(queue...)
	if w.changed == nil {
		w.differs()
	}
	return w
}

// Close ends it.
func (w *Watch) Close() { w.stop() }

// Next returns true when it is time for a look: something changed, nothing did for
// a while, or until was reached. It returns false once who waits has gone. The first look
// comes at once.
func (w *Watch) Next(until time.Time) bool {
	now := time.Now()
	first := w.last.IsZero()
	at := w.last.Add(Glance)
	if first {
		at = now
	}
	if until.Before(at) {
		at = until
	}
	if !first && !w.pause(breath) {
		return false
	}
	for {
		patience := time.Until(at)
		if w.changed == nil {
			patience = min(patience, poll)
		}
		timer := time.NewTimer(max(patience, 0))
		select {
		case <-w.gone:
			timer.Stop()
			return false
		case <-w.changed:
			timer.Stop()
		case <-timer.C:
			if time.Until(at) > 0 && !w.differs() {
				continue
			}
		}
		w.last = time.Now()
		return true
	}
}

// pause waits; it returns false once who waits has gone.
func (w *Watch) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.gone:
		return false
	case <-timer.C:
		return true
	}
}

// differs reports whether one of the files has changed since the last call.
func (w *Watch) differs() bool {
	changed := false
	for i, path := range w.paths {
		now := durable.StampOf(os.Lstat(path))
		changed = changed || !w.seen[i].Same(now)
		w.seen[i] = now
	}
	return changed
}
