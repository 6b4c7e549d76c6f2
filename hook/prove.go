package hook

import (
	"time"

	"heartbeat/hook/inbox"
)

// prove keeps the turn open, without the hook lock, until there is a verdict about the
// entry in flight. The check is made by the scheduler, whatever becomes of this hook:
// the next Stop finds its verdict.
func (t *tick) prove() int {
	now := time.Now()
	t.Record.settleLine()
	if proves(t.Record, now) != await {
		return t.ends()
	}
	v := vigil{me: self(), began: t.began}
	t.Record.Enter(Checking, now)
	t.Record.Waiter = v.me
	t.answers(Checks, "")
	w := newWatch(t.home, inbox.FlightFiles(t.Record.Inbox)...)
	defer w.close()
	t.save()
	t.exit()
	crashPoint("proving")
	until, seen := now.Add(glance), now
	for w.next(until) {
		if !t.enter(lockPatience) {
			if now := time.Now(); t.gone() || now.Sub(seen) > blind {
				return 0
			}
			continue
		}
		seen = time.Now()
		if status, done := t.lookForVerdict(v); done {
			return status
		}
		until = nextLook(t.Record, v, seen)
		t.exit()
	}
	t.excuse(v.me)
	return 0
}

// ends lets the turn end, as was decided.
func (t *tick) ends() int {
	t.letGo()
	t.answers(LetGo, t.Record.whyLetGo())
	t.save()
	return 0
}

// lookForVerdict is one look of a hook that waits for a verdict, under the lock.
func (t *tick) lookForVerdict(v vigil) (status int, done bool) {
	r := t.Record
	if !lives(t.client) {
		t.log("the client has ended: nobody waits any more")
		return t.giveUp(), true
	}
	before := r.Line
	r.lookAtLine()
	now := time.Now()
	switch {
	case doubtful(r, v, now):
		return 0, false
	case !r.awaits(v):
		return 0, true
	}
	flight, ok := t.flight()
	switch {
	case !ok:
		return 0, true
	case r.strangers() && t.hears():
		return t.prolonged(flight, now), true
	case flight == nil:
		return t.goOn(decision{next: true}), true
	case flight.State == inbox.Unproven:
		return t.goOn(decision{again: true}), true
	case flight.State != inbox.Checking: // something worked beside the check, and it is void
		if _, err := t.Check(inbox.Acknowledgement{Session: r.Session, Reply: reply(r, t.event), Now: now}); err != nil {
			t.log("%v", err)
			return t.giveUp(), true
		}
	}
	if proves(r, now) != await {
		return t.ends(), true
	}
	if !now.Before(v.latest(r)) {
		r.Waiter = Process{}
		return t.ends(), true
	}
	if r.Line != before {
		t.save()
	}
	return 0, false
}

// prolonged records that another Stop hook has the client go on: what is checked is
// not what it leaves.
func (t *tick) prolonged(flight *inbox.InFlight, now time.Time) int {
	if flight != nil {
		if _, err := t.Void(); err != nil {
			t.log("%v", err)
		}
	}
	t.Record.goneOn(nil, now)
	t.answers(WentOn, "")
	t.save()
	return 0
}
