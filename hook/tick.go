package hook

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/hooklog"
	"heartbeat/hook/inbox"
	"heartbeat/queue"
)

// How long a hook waits for the hook lock. The client waits for us, so a hook that
// only records something gives up early.
const (
	lockPatience     = 2 * time.Second
	stopLockPatience = 10 * time.Second
)

// tick is one call of a hook in a session of ours.
type tick struct {
	live   *Live
	home   string
	ctx    context.Context // ends when the hook has gone
	give   func(ask.Answer) error
	client Process // of the client that called the hook
	me     Process // the hook
	began  time.Time
	event  *client.Event
	queue  *inbox.Queue
	// handOvers is how many hand-overs the session had had when the hook was
	// called.
	handOvers int
	last      *inbox.InFlight // the entry that was in flight
	done      string          // the delivery id of the entry that this Stop has acknowledged
	ear       handover.Ear    // while it waits
	trouble   string          // what was logged last

	// Session is taken again each time the hook lock is taken, and nil while the
	// lock is not held: nothing of it is carried from one hold to the next.
	*Session
	before Record // the record as it was
}

func (t *tick) log(format string, args ...any) {
	t.trouble = fmt.Sprintf(format, args...)
	hooklog.Line(t.home, "%s: %s", t.event.Name, t.trouble)
}

// enter takes the hook lock and the record under it. It returns false when that
// failed or the session is not ours any more.
func (t *tick) enter(patience time.Duration) bool {
	// What a hook that has gone was told is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), patience)
	defer cancel()
	held, err := t.queue.Lock(ctx)
	if err != nil {
		t.log("cannot take the hook lock: %v", err)
		return false
	}
	t.Session = t.live.Under(held)
	if t.gone() || !t.Record.isBound(t.client) {
		t.exit()
		return false
	}
	t.before = *t.Record
	return true
}

// gone reports whether the session has ended.
func (t *tick) gone() bool { return t.live.Record().Phase == Ended }

// exit releases the hook lock.
func (t *tick) exit() {
	if t.Session == nil {
		return
	}
	for _, note := range t.queue.Notes() {
		t.log("%s", note)
	}
	if err := t.Unlock(); err != nil {
		t.log("cannot release the hook lock: %v", err)
	}
	t.Session = nil
}

// run answers the hook, or leaves it without an answer.
func (t *tick) run() {
	patience := lockPatience
	if t.event.Name == client.Stop {
		patience = stopLockPatience
	}
	if !t.enter(patience) {
		return
	}
	if stray(t.Record, t.event) {
		t.log("ignored: conversation %s is not the one that is followed", t.event.SessionID)
		return
	}
	if !t.heedOthers() || !t.ownReply() {
		return
	}
	d, ok := t.decide()
	if !ok {
		return
	}
	if t.event.Name == client.SessionStart {
		t.Record.Line.follow(t.Record.Transcript)
		t.Record.Heard.Follow(t.Record.Transcript)
	}
	if t.settlesFirst(d) {
		return
	}
	if ok = t.carryOut(d); !ok {
		t.answers(HeldBack, t.trouble)
	}
	switch {
	case ok && t.event.StopHookActive && !d.again && t.Record.strangers() && runsAway(t.Record):
		t.runAway()
	case ok && d.unread:
		t.ends()
	case ok && d.proving:
		t.prove()
	case ok && (d.next || d.again):
		t.goOn(d)
	default:
		if ok {
			t.answersEnd()
		}
		t.save()
		t.exit()
		if len(d.print) > 0 {
			t.print(d.print)
		}
	}
}

// answersEnd records what a Stop is answered that hands over nothing and lets the turn end.
func (t *tick) answersEnd() {
	switch t.Record.Phase {
	case Background:
		t.answers(LetGo, t.Record.whyLetGo())
	case Unattended:
		t.answers(HeldBack, t.trouble)
	}
}

// settlesFirst waits, where the session has Stop hooks of others, for what they decide
// about a turn whose entry is done or claimed to be. It returns false if the decision can
// be carried out at once.
func (t *tick) settlesFirst(d decision) bool {
	done := cmp.Or(d.acknowledge, d.check)
	if done == nil || !t.Record.strangers() {
		return false
	}
	waits := d.check != nil // for the verdict, and what follows
	if !waits {
		entry, ok := t.next()
		if !ok {
			t.giveUp()
			return true
		}
		waits = entry != nil
	}
	if !settles(t.Record, waits, time.Now()) {
		return false
	}
	t.settle(done)
	return true
}

// decide makes the pure decision, and makes it again when it wants to see the
// transcript. The lock is released while the transcript is read, because the client
// writes it with a delay.
func (t *tick) decide() (decision, bool) {
	flight, ok := t.flight()
	if !ok {
		return decision{}, false
	}
	t.last = flight
	f, look := t.facts(flight)
	d := decide(t.Record, f)
	if !d.look {
		return d, true
	}
	t.exit()
	evidence := absent
	if look.Wait(d.patience) == queue.Seen {
		evidence = present
		if t.event.Name == client.Stop && flight.File != "" && !handover.WasRead(flight.Given(), t.event.Transcript, d.patience) {
			evidence = unread
		}
	}
	if !t.enter(lockPatience) {
		return decision{}, false
	}
	again, ok := t.flight()
	if !ok {
		return decision{}, false
	}
	t.last = again
	f, _ = t.facts(again)
	if flight != nil && again != nil && again.DeliveryID == flight.DeliveryID && again.Attempt == flight.Attempt {
		f.evidence = evidence
	} else {
		f.evidence = absent
	}
	return decide(t.Record, f), true
}

// flight returns the entry in flight for this session. An entry that another
// session left is the scheduler's to recover: this session then gets nothing.
func (t *tick) flight() (*inbox.InFlight, bool) {
	f, err := t.InFlight()
	if w := t.Record.Work; err == nil && f == nil && w != nil {
		f, err = t.Restore(w.DeliveryID, w.Attempt, inbox.Offering{
			Session: t.Record.Session, PromptID: t.Record.PromptID, Checked: t.Record.Policy.Checked,
		})
	}
	if err == nil && (f == nil || f.Session == t.Record.Session || f.State == inbox.Unproven) {
		if done := t.Heeds(f); done != "" {
			t.done = done
		}
		return f, true
	}
	if err == nil {
		t.log("entry %s is in flight for session %q", f.DeliveryID, f.Session)
	} else {
		t.log("%v", err)
	}
	if t.event.Name == client.Stop && t.event.AgentID == "" {
		leave(t.Record, Unattended, time.Now())
		t.answers(HeldBack, t.trouble)
		t.save()
	}
	return nil, false
}

// facts gathers what the decision depends on, and where the transcript would show
// that the entry arrived.
func (t *tick) facts(flight *inbox.InFlight) (facts, handover.Proof) {
	f := facts{now: time.Now(), handOvers: t.handOvers, event: t.event, client: t.client, flight: flight}
	if flight == nil {
		return f, handover.Proof{}
	}
	p := handover.Of(flight.Given()).In(t.event.Transcript)
	if p.Asked {
		f.kickoff = p.Text
	}
	return f, p
}

// carryOut makes the decision about the entry in flight durable.
func (t *tick) carryOut(d decision) bool {
	if d.log != "" {
		t.log("%s", d.log)
	}
	var err error
	if d.advance != "" {
		_, err = t.Advance(d.advance, t.event.PromptID)
	}
	if err == nil && d.goesOn {
		_, err = t.GoesOn(t.event.PromptID)
	}
	if err == nil && d.failure != "" {
		_, err = t.Fail(d.failure)
	}
	if err == nil && d.unread {
		_, err = t.Unread()
	}
	if err == nil && d.void {
		_, err = t.Void()
	}
	if err == nil && d.check != nil {
		_, err = t.Check(*d.check)
	}
	if err == nil && d.acknowledge != nil {
		var done *inbox.Delivery
		if done, err = t.Acknowledge(*d.acknowledge); done != nil {
			t.done = done.DeliveryID
		}
	}
	if err == nil {
		return true
	}
	t.log("%v", err)
	if t.event.Name == client.Stop {
		leave(t.Record, Unattended, time.Now())
	}
	return false
}

// save writes the record, unless the only news is that one more tool is about to
// run in a turn that was active within the last second.
func (t *tick) save() {
	if t.event.Name == client.PreToolUse && t.before.Phase == Turn && t.Record.Phase == Turn &&
		!t.before.BoundAt.IsZero() && t.before.Ruling == t.Record.Ruling &&
		t.Record.LastEventAt.Sub(t.before.LastEventAt) < time.Second {
		return
	}
	if err := t.Save(); err != nil {
		t.log("%v", err)
	}
}
