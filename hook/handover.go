package hook

import (
	"context"
	"errors"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
	"heartbeat/hook/handover"
	"heartbeat/hook/process"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// goOn does the rest of a Stop: it hands over the next entry, or with again the one in flight, lets
// the turn end, or waits for work.
func (t *tick) goOn(again bool) {
	t.Record.settleLine()
	entry := again || t.given != nil
	if !entry && t.askedAt.IsZero() {
		var ok bool
		if entry, ok = t.next(func(r *Record) step { return proceed(r, true, time.Now()) }); !ok {
			t.giveUp()
			return
		}
	}
	switch proceed(t.Record, entry, time.Now()) {
	case handOver:
		t.handOver(again)
	case await:
		t.withdraw()
		t.wait(again)
	case approve, idleTick, desert:
		t.withdraw()
		t.ends()
	}
}

// next reports whether there is a next entry, where that matters. would says what the session does
// if there is: if it takes it, it has been handed over with this (given). It returns false when the
// queue cannot tell.
func (t *tick) next(would func(*Record) step) (is, ok bool) {
	r := t.Record.clone()
	switch ruled := r.Ruling != nil; {
	case would(r) == handOver:
		if !t.reaches() {
			t.log("the client has ended, or its hook: nothing is handed over")
			return false, false
		}
		a, ok := t.ask(t.offers())
		t.given = t.handed(a)
		return t.given != nil, ok
	case !ruled && r.Ruling != nil && r.Ruling.Why == EndRunaway:
		return t.isQueued()
	}
	return false, true
}

// isQueued asks whether anything is queued; false if the queue cannot tell.
func (t *tick) isQueued() (is, ok bool) {
	look := t.Look()
	look.Next = true
	a, ok := t.ask(look)
	return a.Queued, ok
}

// offers is the step by which the next entry is handed over.
func (t *tick) offers() wire.Step {
	t.heard, t.askedAt = t.live.Heard(), time.Now()
	return wire.Step{Do: wire.Offer, To: t.to(), Checked: t.Record.Policy.Checked}
}

// to is how this Stop hands an entry over.
func (t *tick) to() queue.Handover {
	return queue.Handover{
		Session: t.Record.Session, Via: queue.ViaStop, At: time.Now(), PromptID: t.event.PromptID,
		Transcript: t.event.Transcript, Offset: handover.TranscriptSize(t.event.Transcript),
	}
}

// handed is what an answer has handed over, or nil.
func (t *tick) handed(a wire.Answer) *queue.Given {
	if g := t.Own(); g != nil && a.Code == "" && a.Entry != nil && a.Text != nil && g.State == queue.Offered {
		return g
	}
	return nil
}

// withdraw takes back what was handed over with an answer, and goes no further.
func (t *tick) withdraw() {
	if g := t.given; g != nil {
		t.given = nil
		t.ask(wire.Step{Do: wire.Withdraw, At: wire.RefOf(&g.Entry)})
	}
}

// reaches reports whether there is a client to hand anything over to, and its hook.
func (t *tick) reaches() bool { return process.Lives(t.client) && t.ctx.Err() == nil }

// giveUp lets the turn end with nothing handed over, for the reason that was logged last;
// no hook will hand anything to the session later.
func (t *tick) giveUp() {
	leave(t.Record, Unattended, time.Now())
	t.answers(HeldBack, t.trouble)
	t.save()
}

// handOver gives the client what was handed over to the session or, with again, the entry in
// flight once more.
func (t *tick) handOver(again bool) {
	if !t.reaches() {
		t.log("the client has ended, or its hook: nothing is handed over")
		t.withdraw()
		t.giveUp()
		return
	}
	a := Gave
	if again {
		a = GaveAgain
		was := t.InFlight()
		if was != nil && was.State == queue.Unproven {
			a = GaveOn
		}
		if !t.handAgain(was) {
			t.giveUp()
			return
		}
	}
	g := t.given
	if !again && g.Unread && t.Record.worked() && handover.NeedsFile(t.event.Transcript, g.Prompt) {
		t.withdraw()
		release(t.Record, "another session has to begin with its next prompt", time.Now())
		t.ends()
		return
	}
	text, ok := t.words(again)
	if !ok {
		t.withdraw()
		t.giveUp()
		return
	}
	if r := t.Record.Ruling; r != nil && r.Final { // since it was asked
		t.withdraw()
		t.ends()
		return
	}
	t.given = nil
	t.Record.HandOvers++
	t.Works(g)
	t.speak(a, text, g)
}

// handAgain hands over the entry in flight again.
func (t *tick) handAgain(g *queue.Given) bool {
	if g == nil {
		t.log("nothing is in flight that could be handed over again")
		return false
	}
	answer, ok := t.ask(wire.Step{Do: wire.Again, At: wire.RefOf(&g.Entry), To: t.to(), Checked: t.Record.Policy.Checked})
	t.given = t.handed(answer)
	return ok && t.given != nil
}

// words returns the text of what was handed over. Where a file carries it, or an equal prompt
// before it is not in the transcript yet, that is recorded first.
func (t *tick) words(again bool) (text string, ok bool) {
	g := t.given
	place := queue.Handover{File: handover.FileFor(t.home, t.event.Transcript, handover.Whole(g)), Offset: g.Handover.Offset}
	if !again && handover.IsLike(t.last, g.Prompt) {
		place.Offset = handover.NextOffset(t.event.Transcript, g.Prompt, t.last, handover.NextPatience)
	}
	if place.File != "" || place.Offset != g.Handover.Offset {
		if _, ok := t.ask(wire.Step{Do: wire.Place, At: wire.RefOf(&g.Entry), To: place}); !ok {
			return "", false
		}
		if g = t.Own(); g == nil {
			t.log("it is not in flight any more")
			return "", false
		}
	}
	crashpoint.At("offered")
	text, err := handover.TextOf(g)
	if err != nil {
		t.log("%v", err)
	}
	return text, err == nil
}

// speak ends a Stop with a text for the next turn. offered is the entry that the
// text is for, or nil. If the client did not get the text, the offer is taken back.
func (t *tick) speak(a Answer, text string, offered *queue.Given) {
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
	why := t.trouble
	if t.enter(turnPatience) {
		t.Record.Spoke = false
		if offered != nil {
			// What the client has said is recorded also when its hook has gone.
			_, err := t.Ask(context.WithoutCancel(t.ctx), stopPatience, wire.Step{Do: wire.Withdraw, At: wire.RefOf(&offered.Entry)})
			if err == nil {
				t.Rests()
			} else if !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrState) {
				t.log("%v", err)
				why = t.trouble
			}
		}
		t.trouble = why
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
