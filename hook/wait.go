package hook

import (
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/process"
)

const (
	// blind is how long a waiting hook goes on without a look after its
	// idle-interval is over.
	blind = time.Minute
	// lastWord is how long a waiting hook that is told to end tries to record that.
	lastWord = 300 * time.Millisecond
)

// settled is how long after a key the transcript shows what was submitted.
func settled() time.Duration { return client.Claude.Transcript.Behind + time.Second }

// wait keeps the turn open until there is work. Others may change the session meanwhile; the watch
// begins before they do, and the first look follows at once, so that no change is missed. again is true when the entry in
// flight must be offered again.
func (t *tick) wait(again bool) {
	now := time.Now()
	v := vigil{me: t.me, began: t.began, idleAt: now.Add(t.Record.Policy.IdleInterval)}
	t.Record.Enter(Waiting, now)
	t.Record.Waiter = v.me
	t.answers(Waits, whyWaits(t.Record, again, now))
	w := t.watches()
	defer w.stop()
	t.save()
	t.exit()
	until, seen := v.idleAt, now
	for w.next(until) {
		if !t.enter(turnPatience) {
			if now := time.Now(); t.gone() || now.After(v.idleAt.Add(glance)) && now.Sub(seen) > blind {
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
	at := now.Add(glance)
	for _, t := range []time.Time{v.idleAt, r.Hush(), r.TypedAt.Add(settled()), v.lineShown(), v.latest(r)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// lookUp is one look of a waiting hook. It returns true when the hook waits no longer.
func (t *tick) lookUp(v vigil, again bool) (done bool) {
	if !process.Lives(t.client) {
		t.log("the client has ended: nobody waits any more")
		t.giveUp()
		return true
	}
	before := t.Record.Line
	t.Record.lookAtLine()
	if doubtful(t.Record, v, time.Now()) {
		return false
	}
	entry := again
	if news := t.live.Heard() != t.heard || time.Since(t.askedAt) >= glance; news && !again && t.Record.Waiter == v.me {
		var ok bool
		if entry, ok = t.next(func(r *Record) step { return awake(r, v, true, time.Now()) }); !ok {
			t.giveUp()
			return true
		}
	}
	now := time.Now()
	if r := t.Record; r.Waiter == v.me && r.strangers() && t.hears() {
		t.withdraw()
		t.Record.goneOn(nil, now)
		t.answers(WentOn, "")
		t.save()
		return true
	}
	next := awake(t.Record, v, entry, now)
	if next != handOver {
		t.withdraw()
	}
	switch next {
	case await:
		if t.Record.Line != before {
			t.save()
		}
		return false
	case desert:
	case handOver:
		t.handOver(again)
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

// glance is how often a waiting hook asks although nobody has said that anything has changed.
const glance = 5 * time.Second

// breath is the minimum time between two looks, however often something changes.
const breath = 10 * time.Millisecond

// watch wakes a hook that waits.
type watch struct {
	changed <-chan struct{} // the session
	stop    func()
	gone    <-chan struct{} // who waits has
	last    time.Time       // of the last look
}

func (t *tick) watches() *watch {
	changed, stop := t.live.Watch()
	return &watch{changed: changed, stop: stop, gone: t.ctx.Done()}
}

// next returns true when it is time for a look: the session has changed, nothing has for a while,
// or until was reached. It returns false once who waits has gone. The first look comes at once.
func (w *watch) next(until time.Time) bool {
	wait := time.Duration(0)
	if !w.last.IsZero() {
		timer := time.NewTimer(breath)
		defer timer.Stop()
		select {
		case <-w.gone:
			return false
		case <-timer.C:
		}
		wait = min(time.Until(w.last.Add(glance)), time.Until(until))
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-w.gone:
		return false
	case <-w.changed:
	case <-timer.C:
	}
	w.last = time.Now()
	return true
}
