package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/hooklog"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// How long a hook waits until it may change the session, and how long one other than a Stop waits
// for the scheduler to record what it tells: the client waits for us.
const (
	turnPatience = 2 * time.Second
	stopPatience = 10 * time.Second
	tellPatience = 2 * time.Second
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
	// handOvers is how many hand-overs the session had had when the hook was
	// called.
	handOvers int
	last      *queue.Given // the entry that was in flight
	given     *queue.Given // the next one, which was handed over with the end of the last
	done      string       // the delivery id of the entry that this Stop has acknowledged
	ear       handover.Ear // while it waits
	heard     int          // Live.Heard when it was last asked for the next entry
	askedAt   time.Time    // when that was
	trouble   string       // what was logged last

	// Session is entered again each time, and nil in between: nothing of it is carried on.
	*Session
	before Record // the record as it was
}

func (t *tick) log(format string, args ...any) {
	t.trouble = fmt.Sprintf(format, args...)
	hooklog.Line(t.home, "%s: %s", t.event.Name, t.trouble)
}

// enter has nobody else change the session. It returns false when that failed, or the session is
// not ours any more.
func (t *tick) enter(patience time.Duration) bool {
	// What a hook that has gone was told is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), patience)
	defer cancel()
	session, err := t.live.Enter(ctx, t.isStop())
	if err != nil {
		t.log("cannot change the session, which somebody else does: %v", err)
		return false
	}
	t.Session, t.done = session, cmp.Or(session.done, t.done)
	if t.gone() || !t.Record.isBound(t.client) {
		t.exit()
		return false
	}
	t.before = *t.Record
	return true
}

// isStop reports whether the main agent's turn is over.
func (t *tick) isStop() bool { return t.event.Name == client.Stop && t.event.AgentID == "" }

// gone reports whether the session has ended.
func (t *tick) gone() bool { return t.live.Record().Phase == Ended }

// exit lets others change the session.
func (t *tick) exit() {
	if t.Session == nil {
		return
	}
	t.Leave()
	t.Session = nil
}

// ask asks the scheduler at a Stop, for as long as the hook lives. It returns false where not all
// was carried out, which is logged.
func (t *tick) ask(steps ...wire.Step) (wire.Answer, bool) {
	a, err := t.Ask(t.ctx, t.Record.Policy.longest(), steps...)
	t.before = *t.Record
	t.done = cmp.Or(t.Session.done, t.done)
	if err == nil && t.gone() {
		err = errGone
	}
	if err != nil {
		t.log("%v", err)
	}
	return a, err == nil
}

// run answers the hook, or leaves it without an answer.
func (t *tick) run() {
	patience := turnPatience
	if t.event.Name == client.Stop {
		patience = stopPatience
	}
	if !t.enter(patience) || !t.catchUp() {
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
	if !t.isStop() {
		t.tell(d)
		return
	}
	if t.settlesFirst(d) {
		return
	}
	if ok = t.carryOut(d); !ok {
		t.answers(HeldBack, t.trouble)
	}
	switch {
	case ok && t.event.StopHookActive && !d.again && t.Record.strangers() && runsAway(t.Record):
		t.withdraw()
		t.runAway()
	case ok && d.unread:
		t.ends()
	case ok && d.proving:
		t.prove()
	case ok && (d.next || d.again):
		t.goOn(d.again)
	default:
		if ok {
			t.answersEnd()
		}
		t.save()
		t.exit()
	}
}

// catchUp waits, at a Stop, until what was asked before is answered. It returns false where the
// scheduler does not answer: then the turn ends.
func (t *tick) catchUp() bool {
	if !t.isStop() {
		if !t.live.asks.isKnown() {
			_ = t.Settle(t.ctx, tellPatience) // what is not known is not in flight
			t.before = *t.Record
		}
		return true
	}
	err := t.Settle(t.ctx, t.Record.Policy.longest())
	t.before = *t.Record
	t.done = cmp.Or(t.Session.done, t.done)
	if err == nil && t.gone() {
		err = errGone
	}
	if err != nil {
		t.log("%v", err)
	}
	ok := err == nil
	if g, w := t.InFlight(), t.Record.Work; ok && w != nil && (g == nil || g.Delivery != w.DeliveryID) {
		_, ok = t.ask(t.Look()) // what became of it
	}
	if !ok {
		t.giveUp()
		t.exit()
	}
	return ok
}

// errGone means that the session has ended.
var errGone = errors.New("the session has ended")

// tell records what an event other than a Stop means for the entry in flight. The client waits for
// it only for a while: it is recorded when the scheduler answers, and the session goes by it at once.
func (t *tick) tell(d decision) {
	if d.log != "" {
		t.log("%s", d.log)
	}
	var told *asked
	if steps := t.steps(d); len(steps) > 0 {
		told = t.live.asks.ask(steps...)
	}
	t.save()
	t.exit()
	if len(d.print) > 0 {
		t.print(d.print)
	}
	if told == nil {
		return
	}
	if _, err := t.live.asks.wait(t.ctx, told, tellPatience); err != nil {
		t.log("%v", err)
	}
}

// steps are what a decision about the entry in flight asks of the scheduler.
func (t *tick) steps(d decision) (steps []wire.Step) {
	g := t.InFlight()
	if g == nil {
		return nil
	}
	at := wire.RefOf(&g.Entry)
	if d.advance != "" {
		steps = append(steps, wire.Step{Do: wire.Advance, At: at, State: d.advance, PromptID: t.event.PromptID})
	}
	if d.goesOn {
		steps = append(steps, wire.Step{Do: wire.GoOn, At: at, PromptID: t.event.PromptID})
	}
	if d.failure != "" {
		steps = append(steps, wire.Step{Do: wire.Fail, At: at, Failure: d.failure})
	}
	if d.unread {
		steps = append(steps, wire.Step{Do: wire.Unread, At: at})
	}
	if d.void {
		steps = append(steps, wire.Step{Do: wire.Void, At: at})
	}
	if d.check != nil {
		steps = append(steps, wire.Step{Do: wire.Claim, At: at, Reply: *d.check})
	}
	if d.acknowledge != nil {
		steps = append(steps, wire.Step{Do: wire.Acknowledge, At: at, Reply: *d.acknowledge})
	}
	return steps
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
		var ok bool
		if waits, ok = t.isQueued(); !ok {
			t.giveUp()
			return true
		}
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
		if t.event.Name == client.Stop && handover.ByFile(flight) && !handover.WasRead(flight, t.event.Transcript, d.patience) {
			evidence = unread
		}
	}
	if !t.enter(turnPatience) {
		return decision{}, false
	}
	again, ok := t.flight()
	if !ok {
		return decision{}, false
	}
	t.last = again
	f, _ = t.facts(again)
	if flight != nil && again != nil && again.Delivery == flight.Delivery && again.Attempt == flight.Attempt {
		f.evidence = evidence
	} else {
		f.evidence = absent
	}
	return decide(t.Record, f), true
}

// flight returns the entry in flight for this session. An entry that another
// session left is the scheduler's to recover: this session then gets nothing.
func (t *tick) flight() (*queue.Given, bool) {
	g := t.InFlight()
	if g == nil || g.Handover.Session == t.Record.Session || g.State == queue.Unproven {
		return g, true
	}
	t.log("entry %s is in flight for session %q", g.Delivery, g.Handover.Session)
	if t.isStop() {
		leave(t.Record, Unattended, time.Now())
		t.answers(HeldBack, t.trouble)
		t.save()
	}
	return nil, false
}

// facts gathers what the decision depends on, and where the transcript would show
// that the entry arrived.
func (t *tick) facts(flight *queue.Given) (facts, handover.Proof) {
	f := facts{now: time.Now(), handOvers: t.handOvers, event: t.event, client: t.client, flight: flight}
	if flight == nil {
		return f, handover.Proof{}
	}
	p := handover.Of(flight).In(t.event.Transcript)
	if p.Asked {
		f.kickoff = p.Text
	}
	return f, p
}

// carryOut makes the decision of a Stop about the entry in flight durable. Where it ends the entry
// and the session would take the next one, both are one request.
func (t *tick) carryOut(d decision) bool {
	if d.log != "" {
		t.log("%s", d.log)
	}
	steps := t.steps(d)
	if len(steps) == 0 {
		return true
	}
	if said := cmp.Or(d.acknowledge, d.check); said != nil {
		// If the scheduler ends before it answers, this and the transcript prove that the turn is over.
		t.Record.Settles, t.Record.LastReply = t.last.Delivery, said.Text
	}
	if d.acknowledge != nil && d.next {
		t.Record.settleLine()
		after := t.Record.clone()
		after.Acknowledged++
		after.Continuations, after.Work = 0, nil
		if t.reaches() && proceed(after, true, time.Now()) == handOver {
			steps = append(steps, t.offers())
		}
	}
	a, ok := t.ask(steps...)
	t.given = t.handed(a)
	if ok && d.check != nil {
		t.Record.LastReply, t.Record.Settles = "", ""
	}
	if !ok {
		leave(t.Record, Unattended, time.Now())
	}
	return ok
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
