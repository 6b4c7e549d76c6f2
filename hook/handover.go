package hook

import (
	"errors"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/queue"
)

// goOn does the rest of a Stop: it hands over the next entry, lets the turn end, or
// waits for work.
func (t *tick) goOn(d decision) {
	var entry *inbox.Entry
	if !d.again {
		var ok bool
		if entry, ok = t.next(); !ok {
			t.giveUp()
			return
		}
	}
	t.Record.settleLine()
	switch proceed(t.Record, d.again || entry != nil, time.Now()) {
	case handOver:
		t.handOver(entry)
	case await:
		t.wait(d.again)
	case approve, idleTick, desert:
		t.ends()
	}
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
func (t *tick) giveUp() {
	leave(t.Record, Unattended, time.Now())
	t.answers(HeldBack, t.trouble)
	t.save()
}

// handOver durably offers the entry, or the one in flight again when entry is nil,
// and then gives it to the client.
func (t *tick) handOver(entry *inbox.Entry) {
	if !process.Lives(t.client) || t.ctx.Err() != nil {
		t.log("the client has ended, or its hook: nothing is handed over")
		t.giveUp()
		return
	}
	if entry != nil && entry.Unread && t.Record.worked() && handover.NeedsFile(t.event.Transcript, entry.Prompt) {
		release(t.Record, "another session has to begin with its next prompt", time.Now())
		t.ends()
		return
	}
	answer, text, flight, err := t.offer(entry)
	if err != nil {
		t.log("%v", err)
		t.giveUp()
		return
	}
	t.Record.HandOvers++
	t.speak(answer, text, flight)
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
	if entry == nil {
		if again != nil {
			o.File = handover.FileFor(t.home, o.Transcript, handover.Whole(again.Given()))
		}
		o.TranscriptOffset = handover.TranscriptSize(o.Transcript)
		_, f, err = t.Reoffer(o)
	} else {
		var last *queue.Given
		if t.last != nil {
			last = t.last.Given()
		}
		o.File = handover.FileFor(t.home, o.Transcript, entry.Prompt)
		o.TranscriptOffset = handover.NextOffset(o.Transcript, entry.Prompt, last, handover.NextPatience)
		f, err = t.Session.Offer(entry, o)
	}
	if err != nil {
		return a, "", nil, err
	}
	crashpoint.At("offered")
	if text, err = handover.TextOf(f.Given()); err != nil {
		_, back := t.TakeBack(f)
		return a, "", nil, errors.Join(err, back)
	}
	return a, text, f, nil
}

// speak ends a Stop with a text for the next turn. offered is the entry that the
// text is for, or nil. If the client did not get the text, the offer is taken back.
func (t *tick) speak(a Answer, text string, offered *inbox.InFlight) {
	leave(t.Record, Turn, time.Now())
	t.Record.Spoke = true
	t.answers(a, "")
	how := t.Record.Policy.Deliver
	t.save()
	t.exit()
	err := t.deliver(how, text)
	if err == nil {
		return
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
}

// deliver gives the client a text in the way that the policy says.
func (t *tick) deliver(how Deliver, text string) error {
	if how == DeliverStderr {
		return t.give(ask.Answer{Kind: ask.Prompt, Body: []byte(text)})
	}
	block, err := client.Claude.Hooks.Block(text)
	if err != nil {
		return err
	}
	return t.give(ask.Answer{Kind: ask.Print, Body: block})
}

// print writes an answer to stdout.
func (t *tick) print(answer []byte) {
	if err := t.give(ask.Answer{Kind: ask.Print, Body: answer}); err != nil {
		t.log("cannot answer: %v", err)
	}
}
