package hook

import (
	"time"

	"heartbeat/hook/process"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// prove keeps the turn open until there is a verdict about the entry in flight. The check is made by the scheduler, whatever becomes of this hook:
// the next Stop finds its verdict.
func (t *tick) prove() {
	now := time.Now()
	t.Record.settleLine()
	if proves(t.Record, now) != await {
		t.ends()
		return
	}
	v := vigil{me: t.me, began: t.began}
	t.Record.Enter(Checking, now)
	t.Record.Waiter = v.me
	t.answers(Checks, "")
	w := t.watches()
	defer w.stop()
	t.save()
	t.exit()
	until, seen, asked := now.Add(glance), now, now
	for w.next(until) {
		if time.Since(asked) >= glance { // nobody may have said so
			asked = time.Now()
			t.live.Moved()
		}
		if !t.enter(turnPatience) {
			if now := time.Now(); t.gone() || now.Sub(seen) > blind {
				return
			}
			continue
		}
		seen = time.Now()
		if t.lookForVerdict(v) {
			return
		}
		until = nextLook(t.Record, v, seen)
		t.exit()
	}
	t.excuse(v.me)
}

// ends lets the turn end, as was decided.
func (t *tick) ends() {
	t.letGo()
	t.answers(LetGo, t.Record.whyLetGo())
	t.save()
}

// lookForVerdict is one look of a hook that waits for a verdict. It returns true when the hook
// waits no longer.
func (t *tick) lookForVerdict(v vigil) (done bool) {
	r := t.Record
	if !process.Lives(t.client) {
		t.log("the client has ended: nobody waits any more")
		t.giveUp()
		return true
	}
	before := r.Line
	r.lookAtLine()
	now := time.Now()
	switch {
	case doubtful(r, v, now):
		return false
	case !r.awaits(v):
		return true
	}
	flight, ok := t.flight()
	switch {
	case !ok:
		return true
	case r.strangers() && t.hears():
		t.prolonged(flight, now)
		return true
	case flight == nil:
		t.goOn(false)
		return true
	case flight.State == queue.Unproven:
		t.goOn(true)
		return true
	case flight.State != queue.Checking: // something worked beside the check, and it is void
		said := queue.Reply{Session: r.Session, Text: KeepReply(reply(r, t.event)), At: now}
		if _, ok := t.ask(wire.Step{Do: wire.Claim, At: wire.RefOf(&flight.Entry), Reply: said}); !ok {
			t.giveUp()
			return true
		}
		r = t.Record
	}
	over := !now.Before(v.latest(r))
	if over && proves(r, now) == await {
		r.Waiter = Process{}
	}
	if over || proves(r, now) != await {
		t.ends()
		return true
	}
	if r.Line != before {
		t.save()
	}
	return false
}

// prolonged records that another Stop hook has the client go on: what is checked is
// not what it leaves.
func (t *tick) prolonged(flight *queue.Given, now time.Time) {
	if flight != nil {
		t.ask(wire.Step{Do: wire.Void, At: wire.RefOf(&flight.Entry)})
	}
	t.Record.goneOn(nil, now)
	t.answers(WentOn, "")
	t.save()
}
