package hook

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

const (
	// glance is how often a waiting hook looks without being notified: inotify does
	// not see changes from other hosts, and a line without a newline becomes an
	// entry just by staying quiet.
	glance = 5 * time.Second
	// blind is how long a waiting hook goes on without the lock after its
	// idle-interval is over.
	blind = time.Minute
	// breath is the minimum time between two looks, for when a writer streams.
	breath = 10 * time.Millisecond
	// poll is how often the files are checked where inotify is missing.
	poll = 250 * time.Millisecond
	// lastWord is how long a waiting hook that is told to end tries to record that.
	lastWord = 300 * time.Millisecond
)

// settled is how long after a key the transcript shows what was submitted.
func settled() time.Duration { return client.Claude.Transcript.Behind + time.Second }

// wait keeps the turn open, without the hook lock, until there is work. The caller
// holds the lock; the watch begins before the lock is released, and the first look
// follows at once, so that no change is missed. again is true when the entry in
// flight must be offered again.
func (t *tick) wait(again bool) int {
	now := time.Now()
	v := vigil{me: self(), began: t.began, idleAt: now.Add(t.Record.Policy.IdleInterval)}
	t.Record.Enter(Waiting, now)
	t.Record.Waiter = v.me
	t.answers(Waits, whyWaits(t.Record, again, now))
	w := newWatch(t.home, t.Record.Inbox, inbox.Urgent(t.Record.Inbox))
	defer w.close()
	t.save()
	t.exit()
	crashPoint("waiting")
	until, seen := v.idleAt, now
	for w.next(until) {
		if !t.enter(lockPatience) {
			if now := time.Now(); t.gone() || now.After(v.idleAt.Add(glance)) && now.Sub(seen) > blind {
				return 0
			}
			continue
		}
		seen = time.Now()
		if status, done := t.lookUp(v, again); done {
			return status
		}
		until = nextLook(t.Record, v, seen)
		t.exit()
	}
	t.excuse(v.me)
	return 0
}

// nextLook returns the latest time for the next look if nothing happens.
func nextLook(r *Record, v vigil, now time.Time) time.Time {
	at := now.Add(glance)
	for _, t := range []time.Time{v.idleAt, r.Hush(), r.TypedAt.Add(settled()), v.lineShown(), v.latest(r)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// gone reports whether the session has ended.
func (t *tick) gone() bool {
	r, err := t.read()
	return errors.Is(err, fs.ErrNotExist) || err == nil && r == nil
}

// lookUp is one look of a waiting hook, under the lock.
func (t *tick) lookUp(v vigil, again bool) (status int, done bool) {
	if !lives(t.client) {
		t.log("the client has ended: nobody waits any more")
		return t.giveUp(), true
	}
	var entry *inbox.Entry
	before := t.Record.Line
	t.Record.lookAtLine()
	if doubtful(t.Record, v, time.Now()) {
		return 0, false
	}
	if t.Record.Waiter == v.me && !again {
		var ok bool
		if entry, ok = t.next(); !ok {
			return t.giveUp(), true
		}
	}
	now := time.Now()
	if r := t.Record; r.Waiter == v.me && r.strangers() && t.hears() {
		r.goneOn(nil, now)
		t.answers(WentOn, "")
		t.save()
		return 0, true
	}
	switch awake(t.Record, v, again || entry != nil, now) {
	case await:
		if t.Record.Line != before {
			t.save()
		}
		return 0, false
	case desert:
		return 0, true
	case handOver:
		return t.handOver(entry), true
	case idleTick:
		return t.speak(IdleTurn, idleTickPrompt, nil), true
	}
	return t.ends(), true
}

// whyWaits is what a hook waits for, other than work.
func whyWaits(r *Record, again bool, now time.Time) string {
	switch {
	case typing(r, now):
		return "a person has typed"
	case again:
		return "the entry has not arrived"
	}
	return ""
}

// hears reports whether another hook of this Stop has answered.
func (t *tick) hears() bool {
	if heard := t.Record.Heard; t.ear.From.Path != heard.Path {
		t.ear = handover.Ear{From: heard}
	}
	return t.ear.OthersSpoke()
}

// excuse records that this hook was told to end: by its time-out, by a person's
// ESC, or because the session ends. A check goes on without it.
func (t *tick) excuse(me Process) {
	if !t.enter(lastWord) {
		return
	}
	r := t.Record
	if !r.awaits(vigil{me: me}) {
		return
	}
	if r.Phase == Checking {
		r.Waiter = Process{}
	} else {
		leave(r, Unattended, time.Now())
	}
	t.answers(LetGo, "the hook was told to end")
	t.save()
}

// watch wakes its owner when one of some files changed.
type watch struct {
	paths   []string
	changed <-chan struct{}
	stop    func()
	signals chan os.Signal
	last    time.Time // of the last look
	seen    []durable.Stamp
}

// newWatch watches files that a queue has and the session record in home.
func newWatch(home string, queue ...string) *watch {
	paths := append(queue, recordPath(home))
	w := &watch{paths: paths, signals: make(chan os.Signal, 1), seen: make([]durable.Stamp, len(paths))}
	signal.Notify(w.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	w.changed, w.stop = notify(paths...)
	if w.changed == nil {
		w.differs()
	}
	return w
}

func (w *watch) close() {
	signal.Stop(w.signals)
	w.stop()
}

// next returns true when it is time for a look: something changed, nothing did for
// a while, or until was reached. It returns false after a signal. The first look
// comes at once.
func (w *watch) next(until time.Time) bool {
	now := time.Now()
	first := w.last.IsZero()
	at := w.last.Add(glance)
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
		case <-w.signals:
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

// pause waits; it returns false after a signal.
func (w *watch) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.signals:
		return false
	case <-timer.C:
		return true
	}
}

// differs reports whether one of the files has changed since the last call.
func (w *watch) differs() bool {
	changed := false
	for i, path := range w.paths {
		now := durable.StampOf(os.Lstat(path))
		changed = changed || !w.seen[i].Same(now)
		w.seen[i] = now
	}
	return changed
}
