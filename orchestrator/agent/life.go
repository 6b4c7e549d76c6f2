package agent

import (
	"cmp"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
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
	judged  bool         // an entry of its has had a verdict
	noted   session.Said // what it has said of itself that is in the journal
	strays  int          // how many of its prompts past the queue are in the journal
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
	case a.past.held.lasts: // nothing is started anyway
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
	a.past.left.inFlight = nil
	a.life = life{is: Live, why: "session started", session: id, started: now, last: session.Report{Phase: hook.Starting, At: now}}
	switch {
	case stage == EndsNow:
		a.Stop()
	case a.past.left.unseen: // in a directory whose entry in flight nobody has dealt with
		a.order(session.Order{Stop: true, Finish: FinishReplaced})
	case stage == EndsTurns:
		a.Finish(FinishShutdown)
	case a.wish.removed:
		a.Finish(FinishRemoved)
	case !a.wish.paused.Since.IsZero():
		a.Finish(a.pausedReason())
	case a.wish.awaits != nil:
		a.Finish(a.awaitsReason())
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
	if a.labour.follow(r.Phase, now); worked {
		a.labour.restart(now)
	}
	if r.At = now; r.Phase == l.last.Phase {
		r.At = l.last.At // since when it does what it does
	}
	if l.leaves == yields && r.Phase != hook.Waiting && r.Phase != hook.Checking && r.Phase != hook.Ending {
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
	a.Strays(r.Strays)
	l.last = r
	if full := a.Full(); full != "" && l.leaves == stays {
		a.Finish(full)
	}
	return worked
}

// Done returns how many entries its sessions have done in this run.
func (a *Agent) Done() int {
	n := a.done.acknowledged
	if a.life.is == Live {
		n += a.life.last.Acknowledged
	}
	return n
}

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
	// Poison is true if the entry in flight was given up for the sake of those behind
	// it.
	Poison bool
	// Exhausted is true if the entry in flight was given up because it had used up its
	// attempts.
	Exhausted bool
	// Unrecovered, if not nil, is why what was in flight could not be dealt with.
	Unrecovered *Failed
	// Parks, if not nil, is what its account says: that was at fault.
	Parks *Parking
	// Answers are those that were in place when it began; see launch.Prepared.
	Answers string
	// Fix is what a person does about it, where that depends on the agent; or "".
	Fix string
}

// Parking is an account's no: until when nothing is started, or until a person has
// acted, and why.
type Parking struct {
	Until  time.Time
	Person bool
	Reason string
	Fix    string // what a person does about it, or ""
	// Limit is true if a limit was reached, Known if it is known when that ends:
	// then nothing shortens it.
	Limit, Known bool
	// Room is true if the account works, and the file leaves the rest of its limits to people.
	Room bool
}

// Ended decides what follows a session's end.
func (a *Agent) Ended(e End, now time.Time, roll float64) {
	if a.life.is != Live {
		return
	}
	a.Counted(e.Queued, e.Names)
	a.queue.folders = e.Folders
	a.goesOn(e, now)
	a.heardAnswer(e.Acknowledged)
	a.turns.follow(hook.Ended, now)
	if a.labour.follow(hook.Ended, now); !a.check.wanted && !a.check.begun {
		a.labour.restart(now) // it has left nothing to prove
	}
	a.life.is, a.life.last.Work, a.life.cancels = None, nil, nil
	a.done.acknowledged += e.Acknowledged
	e.Unproved = e.Unproved || a.life.judged || a.check.begun
	a.past.left.ends(&e.Outcome)
	n, h := afterEnd(e, a.past.history, ruleOf(a.def), now, roll)
	n.fix = cmp.Or(n.fix, e.Fix)
	if e.Loss != nil {
		a.queueLost(*e.Loss, now)
	}
	a.past.history = h
	a.stuckAfter(e.Outcome, now)
	if f := e.Unrecovered; f != nil {
		a.past.left.owed = &e.Outcome // before the next start
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

// Recover begins to recover what is in flight in its directory; then says why it is
// idle after that. If something else is being done with the agent, nothing happens.
func (a *Agent) Recover(then string) {
	if a.life.is != None {
		return
	}
	a.follow(next{state: status.Idle, reason: then})
	a.life.is, a.life.why = Recovering, then
	a.past.left.unseen = false
}

// Owes reports whether what is in flight in its directory has to be dealt with
// before a session starts there.
func (a *Agent) Owes() bool { return a.past.left.owed != nil || a.past.left.unseen }

// Owed returns the end of the session whose entry in flight could not be dealt
// with, or nil.
func (a *Agent) Owed() *session.Outcome { return a.past.left.owed }

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
	checked := a.check.recovers
	a.check.recovers = false
	if a.past.left.owed = nil; f == nil && checked {
		a.idle, a.queue.stale = a.life.why, true
		return
	}
	if f != nil && !a.past.left.unseen {
		a.past.left.owed = &after
		a.Fails(*f, now, roll)
		return
	}
	a.follow(next{state: status.Idle, reason: a.life.why})
}

// Poisonous reports whether the entry in flight at a session's end has to be given up
// for the sake of those behind it.
func (a *Agent) Poisonous(o session.Outcome, now time.Time) bool {
	return poisonous(o, a.past.history, ruleOf(a.def), now)
}

func ruleOf(c *config.Agent) restartRule {
	return restartRule{max: c.MaxRestarts, window: c.RestartWindow}
}
