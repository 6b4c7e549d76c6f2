package hook

import (
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/hook/wake"
)

const (
	// blind is how long a waiting hook goes on without the lock after its
	// idle-interval is over.
	blind = time.Minute
	// lastWord is how long a waiting hook that is told to end tries to record that.
	lastWord = 300 * time.Millisecond
)

// settled is how long after a key the transcript shows what was submitted.
func settled() time.Duration { return client.Claude.Transcript.Behind + time.Second }

// wait keeps the turn open, without the hook lock, until there is work. The caller
// holds the lock; the watch begins before the lock is released, and the first look
// follows at once, so that no change is missed. again is true when the entry in
// flight must be offered again.
func (t *tick) wait(again bool) {
	now := time.Now()
	v := vigil{me: t.me, began: t.began, idleAt: now.Add(t.Record.Policy.IdleInterval)}
	t.Record.Enter(Waiting, now)
	t.Record.Waiter = v.me
	t.answers(Waits, whyWaits(t.Record, again, now))
	w := t.watches(t.Record.Inbox, inbox.Urgent(t.Record.Inbox))
	defer w.Close()
	t.save()
	t.exit()
	until, seen := v.idleAt, now
	for w.Next(until) {
		if !t.enter(lockPatience) {
			if now := time.Now(); t.gone() || now.After(v.idleAt.Add(wake.Glance)) && now.Sub(seen) > blind {
				return
			}
			continue
		}
		seen = time.Now()
		if t.lookUp(v, again) {
			return
		}
		until = nextLook(t.Record, v, seen)
		t.exit()
	}
	t.excuse(v.me)
}

// nextLook returns the latest time for the next look if nothing happens.
func nextLook(r *Record, v vigil, now time.Time) time.Time {
	at := now.Add(wake.Glance)
	for _, t := range []time.Time{v.idleAt, r.Hush(), r.TypedAt.Add(settled()), v.lineShown(), v.latest(r)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// lookUp is one look of a waiting hook, under the lock. It returns true when the hook waits
// no longer.
func (t *tick) lookUp(v vigil, again bool) (done bool) {
	if !process.Lives(t.client) {
		t.log("the client has ended: nobody waits any more")
		t.giveUp()
		return true
	}
	var entry *inbox.Entry
	before := t.Record.Line
	t.Record.lookAtLine()
	if doubtful(t.Record, v, time.Now()) {
		return false
	}
	if t.Record.Waiter == v.me && !again {
		var ok bool
		if entry, ok = t.next(); !ok {
			t.giveUp()
			return true
		}
	}
	now := time.Now()
	if r := t.Record; r.Waiter == v.me && r.strangers() && t.hears() {
		r.goneOn(nil, now)
		t.answers(WentOn, "")
		t.save()
		return true
	}
	switch awake(t.Record, v, again || entry != nil, now) {
	case await:
		if t.Record.Line != before {
			t.save()
		}
		return false
	case desert:
	case handOver:
		t.handOver(entry)
	case idleTick:
		t.speak(IdleTurn, handover.IdleTick, nil)
	case approve:
		t.ends()
	}
	return true
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

// watches watches files that the queue has, and the session.
func (t *tick) watches(queue ...string) *wake.Watch {
	saved, unsubscribe := t.live.Watch()
	w := wake.Files(t.ctx.Done(), queue...)
	w.Also(saved, unsubscribe)
	return w
}
