package hook

import (
	"errors"
	"time"

	"heartbeat/hook/inbox"
)

// goOn does the rest of a Stop: it hands over the next entry, lets the turn end, or
// waits for work.
func (t *tick) goOn(d decision) int {
	var entry *inbox.Entry
	if !d.again {
		var ok bool
		if entry, ok = t.next(); !ok {
			return t.giveUp()
		}
	}
	t.Record.settleLine()
	switch proceed(t.Record, d.again || entry != nil, time.Now()) {
	case handOver:
		return t.handOver(entry)
	case await:
		return t.wait(d.again)
	}
	return t.ends()
}

// next returns the next entry, or nil when none is queued. It returns false when
// the queue cannot tell.
func (t *tick) next() (*inbox.Entry, bool) {
	entry, err := t.Next()
	switch {
	case err == nil:
		return entry, true
	case errors.Is(err, inbox.ErrEmpty):
		return nil, true
	}
	t.log("%v", err)
	return nil, false
}

// giveUp lets the turn end with nothing handed over, for the reason that was logged last;
// no hook will hand anything to the session later.
func (t *tick) giveUp() int {
	leave(t.Record, Unattended, time.Now())
	t.answers(HeldBack, t.trouble)
	t.save()
	return 0
}

// handOver durably offers the entry, or the one in flight again when entry is nil,
// and then gives it to the client.
func (t *tick) handOver(entry *inbox.Entry) int {
	if !lives(t.client) {
		t.log("the client has ended: nothing is handed over")
		return t.giveUp()
	}
	answer, text, flight, err := t.offer(entry)
	if err != nil {
		t.log("%v", err)
		return t.giveUp()
	}
	t.Record.HandOvers++
	return t.speak(answer, text, flight)
}

// offer offers the entry, or the one in flight again when entry is nil, and returns the
// text by which it is handed over.
func (t *tick) offer(entry *inbox.Entry) (a Answer, text string, f *inbox.InFlight, err error) {
	o := inbox.Offering{
		Via: inbox.ViaStop, Session: t.Record.Session, PromptID: t.event.PromptID,
		Transcript: t.event.Transcript,
	}
	a = Gave
	var again *inbox.InFlight
	if entry == nil {
		a = GaveAgain
		if again, err = t.InFlight(); err == nil && again != nil && again.State == inbox.Unproven {
			a = GaveOn
		}
	}
	text, f, err = offer(t.Session, t.home, entry, again, o, t.last)
	return a, text, f, err
}

// speak ends a Stop with a text for the next turn. offered is the entry that the
// text is for, or nil. If the client did not get the text, the offer is taken back.
func (t *tick) speak(a Answer, text string, offered *inbox.InFlight) int {
	leave(t.Record, Turn, time.Now())
	t.Record.Spoke = true
	t.answers(a, "")
	how := t.Record.Policy.Deliver
	t.save()
	t.exit()
	status, err := deliver(t.call, how, text)
	if err == nil {
		return status
	}
	t.log("cannot hand over: %v", err)
	if t.enter(lockPatience) {
		t.Record.Spoke = false
		if offered != nil {
			if _, err := t.TakeBack(offered); err != nil {
				t.log("%v", err)
			}
		}
		t.giveUp()
	}
	return status
}

// print writes an answer to stdout.
func (t *tick) print(answer []byte) int {
	if _, err := writeOnce(t.call.Stdout, answer); err != nil {
		t.log("cannot answer: %v", err)
	}
	return 0
}
