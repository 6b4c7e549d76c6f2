package agent

import (
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// Doing is what is being done with an agent now.
type Doing int

// None, recovering what is in flight in its directory, starting a session, or a
// live one.
const (
	None Doing = iota
	Recovering
	Starting
	Live
)

type life struct {
	is  Doing
	why string // of what it does, or after its recovery why it is idle
	// Of the live session or the last one.
	session string
	started time.Time
	last    session.Report
	leaves  leaving
	// cancels is what a person has asked to cancel and is not carried out yet, or
	// nil.
	cancels *inbox.Cancellation
	limited bool         // it was told to finish because of a limit of its account
	noted   session.Said // what it has said of itself that is in the journal
}

// leaving is how a live session was told to end, the stronger word last.
type leaving int

const (
	stays  leaving = iota
	yields         // once nothing is queued; not when it begins a turn instead
	finishes
)

// Doing returns what is being done with the agent now.
func (a *Agent) Doing() Doing { return a.life.is }

// Session returns the id of its live or last session, and when that began.
func (a *Agent) Session() (id string, started time.Time) { return a.life.session, a.life.started }

// Reported returns the last report of its live session.
func (a *Agent) Reported() session.Report { return a.life.last }

// An event that does not fit what is being done with the agent changes nothing: one
// directory has one session.

// Begin starts a session, or puts the agent in the line if no slot is free: then
// line says why.
func (a *Agent) Begin(line string, now time.Time) {
	if !a.Wants(now) {
		return
	}
	if a.queue.line = line; line == "" {
		a.life.is, a.life.why = Starting, "work is queued"
	}
}

// NotBegun takes back the start of a session, and says why.
func (a *Agent) NotBegun(why string) {
	if a.life.is == Starting {
		a.life.is, a.idle = None, why
	}
}

// Failed is a failure of ours: a queue that cannot be read, a start that failed.
type Failed struct {
	// Text is what failed, Fix what to do about it, where that is known.
	Text, Fix string
	// Person is true if only a person can help, NoRoom if nobody has to. Blocks is
	// true if nothing can work before Fix is done, and asking again tells whether it
	// is.
	Person, NoRoom, Blocks bool
}

// Fails records a failure, of the start of a session or without one: it backs off,
// or is held if only a person can help.
func (a *Agent) Fails(f Failed, now time.Time, roll float64) {
	if a.life.is == Live {
		return
	}
	a.life.is = None
	switch {
	case a.past.lasts: // nothing is started anyway
		return
	case f.Blocks:
		a.blocks(f, now)
		return
	case f.Person:
		a.follow(next{state: status.Held, reason: f.Text, fix: f.Fix})
		return
	}
	n, h := failed(session.Outcome{Detail: f.Text, NoRoom: f.NoRoom}, a.past.history, ruleOf(a.def), now, roll)
	n.reason, n.fix = f.Text, f.Fix
	a.past.history = h
	a.follow(n)
}

// Shutdown is how far a scheduler has got with its end.
type Shutdown int

// It runs; turns may finish; sessions end at once.
const (
	Runs Shutdown = iota
	EndsTurns
	EndsNow
)

// Launched says that a session was started.
func (a *Agent) Launched(id string, stage Shutdown, now time.Time) {
	if a.life.is != Starting {
		return
	}
	a.past.halted = nil
	a.life = life{is: Live, why: "session started", session: id, started: now, last: session.Report{Phase: hook.Starting, At: now}}
	switch {
	case stage == EndsNow:
		a.Stop()
	case a.past.unseen: // in a directory whose entry in flight nobody has dealt with
		a.order(session.Order{Stop: true, Finish: FinishReplaced})
	case stage == EndsTurns:
		a.Finish(FinishShutdown)
	case a.wish.removed:
		a.Finish(FinishRemoved)
	case !a.wish.paused.Since.IsZero():
		a.Finish(a.pausedReason())
	case a.Overspent(now):
		a.Finish(a.past.budget.why)
	case a.wish.next != nil && a.def.Mode == hook.Persist:
		a.Finish(FinishChanged)
	}
}

// Reports takes a report of the live session. It returns true if entries were done
// since the last one.
func (a *Agent) Reports(r session.Report, now time.Time) (worked bool) {
	l := &a.life
	if l.is != Live {
		return false
	}
	worked = r.Acknowledged > l.last.Acknowledged
	a.turns.follow(r.Phase, r.At)
	if r.At = now; r.Phase == l.last.Phase {
		r.At = l.last.At // since when it does what it does
	}
	if l.leaves == yields && r.Phase != hook.Waiting && r.Phase != hook.Ending {
		l.leaves = stays
	}
	if c := l.cancels; c != nil && overtakes(r, c) {
		a.overtaken()
	}
	if l.last.Phase == hook.Ending && r.Phase != hook.Ending {
		l.why = "a turn began after all"
	}
	a.hears(r.Said, now)
	a.Answers(r.Answers)
	l.last = r
	if full := a.Full(); full != "" && l.leaves == stays {
		a.Finish(full)
	}
	return worked
}

// Answers notes what its session's Stop hooks have decided.
func (a *Agent) Answers(all []hook.Answered) {
	for _, h := range all {
		a.note(journal.Event{Kind: journal.Stopped, Answer: h.Answer, Done: h.Done, Entry: h.Entry, Reason: foreign.Text(h.Why)})
	}
}

// saidEvery is how often the journal gets what a session says of itself.
const saidEvery = time.Minute

// hears notes what the live session says of itself: new words, now and then.
func (a *Agent) hears(said *session.Said, now time.Time) {
	l := &a.life
	if said == nil || said.Text == "" || said.Text == l.noted.Text || now.Sub(l.noted.At) < saidEvery {
		return
	}
	l.noted = session.Said{At: now, Text: said.Text}
	a.note(journal.Event{Kind: journal.Alive, Session: l.session, Detail: foreign.Text(said.Text)})
}

// Full says that the conversation of its session is fuller than max-context allows; ""
// where it is not, or nothing was told of it.
func (a *Agent) Full() string {
	told := a.life.last.Told
	if a.def.MaxContext == 0 || told == nil || told.Context.Used < float64(a.def.MaxContext) {
		return ""
	}
	return fmt.Sprintf("its context is %.0f%% full, and max-context is %d%%: the next session begins a new conversation", told.Context.Used, a.def.MaxContext)
}

// Done returns how many entries its sessions have done in this run.
func (a *Agent) Done() int {
	n := a.done.acknowledged
	if a.life.is == Live {
		n += a.life.last.Acknowledged
	}
	return n
}

// Why sessions are told to finish.
const (
	FinishShutdown = "the scheduler is stopping"
	FinishRemoved  = "the agent was removed from the configuration"
	FinishChanged  = "the agent's definition changed"
	FinishSlotTime = "other agents wait for its slot"
	FinishReplaced = "its directory was replaced"
)

// Finish tells the live session to end after its turn.
func (a *Agent) Finish(why string) {
	if a.life.is != Live {
		return
	}
	a.life.leaves = finishes
	a.order(session.Order{Finish: why, Shutdown: why == FinishShutdown})
}

// FinishForLimit tells the live session to end after its turn, because its account
// is parked; its conversation continues afterwards.
func (a *Agent) FinishForLimit(why string) {
	if a.life.is == Live && !a.life.limited {
		a.life.limited = true
		a.Finish(why)
	}
}

// StopForLimit ends a session that was being started when its account was parked:
// it would only be refused.
func (a *Agent) StopForLimit(why string) {
	if a.life.is == Live {
		a.life.limited = true
		a.order(session.Order{Stop: true, Finish: why})
	}
}

// IdleSince returns since when the live session, which may be asked to yield, has
// been waiting for work; SlotSince since when one that may be asked to end after
// its turn has had its slot. Both are false for a session that keeps its slot, or
// leaves it anyway.
func (a *Agent) IdleSince() (since time.Time, ok bool) {
	l := a.life
	return l.last.At, l.is == Live && l.leaves == stays && l.last.Phase == hook.Waiting && a.def.OnIdle == hook.IdleRelease
}

// SlotSince is described at IdleSince.
func (a *Agent) SlotSince() (since time.Time, ok bool) {
	_, idle := a.IdleSince()
	return a.life.started, a.life.is == Live && a.life.leaves == stays && a.life.last.Phase != hook.Ending && !idle && !a.def.KeepsSlot()
}

// Leaves reports whether its slot is about to become free.
func (a *Agent) Leaves() bool {
	return a.life.is == Live && (a.life.leaves != stays || a.life.last.Phase == hook.Ending)
}

// Boots reports whether a session is starting from which no hook has been heard
// yet.
func (a *Agent) Boots() bool {
	return a.life.is == Starting || a.life.is == Live && a.life.last.Phase == hook.Starting
}

// Yield tells the live session, which waits for work, to end unless some arrives.
func (a *Agent) Yield() {
	if a.life.is != Live {
		return
	}
	a.life.leaves = yields
	a.order(session.Order{Yield: true})
}

// Stop ends the live session, whatever it does: the scheduler itself is ending.
func (a *Agent) Stop() { a.order(session.Order{Stop: true, Shutdown: true}) }

// End is how a session ended, and what it left.
type End struct {
	session.Outcome
	// Left is true if something is queued, or may be; Queued is how much, Names are
	// those of the first entries.
	Left   bool
	Queued int
	Names  []string
	// Folders are those of its queue as they are now; nil if one is missing.
	Folders session.Ground
	// Poison is true if the entry in work was given up for the sake of those behind
	// it.
	Poison bool
	// Unrecovered, if not nil, is why what was in flight could not be dealt with.
	Unrecovered *Failed
	// Parks, if not nil, is what its account says: that was at fault.
	Parks *Parking
	// Answers are those that were in place when it began; see launch.Prepared.
	Answers string
}

// Parking is an account's no: until when nothing is started, or until a person has
// acted, and why.
type Parking struct {
	Until  time.Time
	Person bool
	Reason string
	// Limit is true if a limit was reached, Known if it is known when that ends:
	// then nothing shortens it.
	Limit, Known bool
}

// Ended decides what follows a session's end.
func (a *Agent) Ended(e End, now time.Time, roll float64) {
	if a.life.is != Live {
		return
	}
	a.Counted(e.Queued, e.Names)
	a.queue.folders = e.Folders
	a.goesOn(e, now)
	a.turns.follow(hook.Ended, now)
	a.life.is, a.life.last.Work, a.life.cancels = None, nil, nil
	a.done.acknowledged += e.Acknowledged
	a.past.outcome = &e.Outcome
	var n next
	h := a.past.history
	switch {
	case e.Poison && e.Unrecovered == nil:
		n, h = poisoned(e.Outcome, h)
	case e.Parks == nil:
		n, h = after(e.Outcome, e.Left, h, ruleOf(a.def), now, roll)
	default:
		if e.Acknowledged > 0 {
			h = history{}
		}
		n = next{state: status.Parked, parking: *e.Parks}
	}
	if e.Loss != nil {
		a.queueLost(*e.Loss, now)
	}
	a.past.history = h
	a.stuckAfter(e.Outcome, now)
	if f := e.Unrecovered; f != nil {
		a.past.owed = &e.Outcome // before the next start
		if n.state == status.Idle || f.Person {
			a.Fails(*f, now, roll)
			return
		}
	}
	if n.blocks {
		a.blocks(Failed{Text: n.reason, Fix: n.fix}, now)
		a.past.blocked.answers = e.Answers
		return
	}
	a.follow(n)
	a.refuses(now)
}

// Parks takes an account's no to an agent that was about to start.
func (a *Agent) Parks(p Parking, now time.Time) {
	switch a.life.is {
	case Recovering, Live:
		return
	case None, Starting:
	}
	if a.life.is = None; a.past.lasts {
		return
	}
	a.follow(next{state: status.Parked, parking: p})
	a.refuses(now)
}

// OnAccount reports whether it waits for its account, or for a person to act on
// that.
func (a *Agent) OnAccount() bool { return a.past.parked != Parking{} }

// Unparks makes an agent that waits for its account ask again.
func (a *Agent) Unparks() {
	if a.life.is == None && a.OnAccount() {
		a.follow(next{state: status.Idle, reason: "its account is asked again"})
	}
}

// Recover begins to recover what is in flight in its directory; then says why it is
// idle after that. If something else is being done with the agent, nothing happens.
func (a *Agent) Recover(then string) {
	if a.life.is != None {
		return
	}
	a.follow(next{state: status.Idle, reason: then})
	a.life.is, a.life.why = Recovering, then
	a.past.unseen = false
}

// Owes reports whether what is in flight in its directory has to be dealt with
// before a session starts there.
func (a *Agent) Owes() bool { return a.past.owed != nil || a.past.unseen }

// Owed returns the end of the session whose entry in flight could not be dealt
// with, or nil.
func (a *Agent) Owed() *session.Outcome { return a.past.owed }

// Recovered says that a recovery has ended, after the end of a session: f says why
// it failed, or is nil.
func (a *Agent) Recovered(after session.Outcome, f *Failed, now time.Time, roll float64) {
	if a.life.is == Starting || a.life.is == Live {
		return
	}
	a.life.is = None
	if a.life.cancels != nil { // what keeps it from starting stays
		a.life.cancels, a.queue.stale = nil, true
		return
	}
	if a.past.owed = nil; f != nil && !a.past.unseen {
		a.past.owed = &after
		a.Fails(*f, now, roll)
		return
	}
	a.follow(next{state: status.Idle, reason: a.life.why})
}

// Poisonous reports whether the entry in work at a session's end has to be given up
// for the sake of those behind it.
func (a *Agent) Poisonous(o session.Outcome, now time.Time) bool {
	return poisonous(o, a.past.history, ruleOf(a.def), now)
}

func ruleOf(c *config.Agent) restartRule {
	return restartRule{max: c.MaxRestarts, window: c.RestartWindow}
}
