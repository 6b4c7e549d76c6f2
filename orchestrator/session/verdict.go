package session

import (
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
)

// settle is how long a drained or released session must have been without a hook
// event before it is ended: a background task that has just finished may be
// starting a turn (60 ms later, measured in 2.1.329).
const settle = time.Second

const (
	// settleMost is how long events may delay that.
	settleMost = 30 * time.Second
	// parting is how long a client may take to end after it says so.
	parting = time.Minute
	// yieldPatience is how long a waiting hook may take to release the session.
	yieldPatience = 5 * time.Second
)

// limits are the parts of a Spec that time is measured against.
type limits struct {
	entry, session, start, idle, background, stall, tool, hold time.Duration
	tools                                                      map[string]time.Duration
}

func (s *Spec) limits() limits {
	return limits{
		s.EntryTimeout, s.SessionTimeout, s.StartTimeout, s.IdleGrace, s.BackgroundTimeout, s.StallTimeout, s.ToolTimeout, s.Hold, s.ToolTimeouts,
	}
}

// facts are what a verdict is based on. All times are the shim's own.
type facts struct {
	now  time.Time
	seen sight
	// ruling is the one in force, or nil.
	ruling *hook.Ruling
	// attached is how many people who may type have joined, typed when one of them
	// last pressed a key.
	attached int
	typed    time.Time
	// asked is when the session was asked to give its slot to another agent.
	asked time.Time
	// waiterGone is true if the record says that a hook waits, but that process is
	// gone (killed by its time-out, or by ESC).
	waiterGone bool
	// waits is true if a hook of the session waits. checking is true if the queue says
	// that its entry is being checked.
	waits, checking bool
	// quietSince is when the terminal went quiet, or zero while it is not.
	quietSince time.Time
	// aliveAt is the last sign of life other than hook events; see lifeMeter.
	aliveAt time.Time
	// stopped is true if the client has demonstrably stopped after the turn that
	// the session settles.
	stopped bool
	// tool is the one that runs longest in the turn, or nil; toolEnded is when one
	// ended last.
	tool      *Tool
	toolEnded time.Time
	// untold is true while the client has not yet written into the transcript what it
	// told its hook of a limit.
	untold bool
	// deafSince is since when the client works without our hooks, or zero.
	deafSince time.Time
	unseen    bool // a hook came whose process cannot be seen
	// signed is when the session last said itself that it lives; zero: never.
	signed time.Time
}

// verdict is what the shim does next; the zero value leaves the session alone.
type verdict struct {
	end    hook.End
	detail string
	// afterTurn lets the turn finish: the ruling is not final.
	afterTurn bool
	// abandon acknowledges the entry in flight before the end, and names its
	// background tasks as abandoned.
	abandon bool
	// settled is true if the entry whose turn was allowed to end is done.
	settled bool
	// leave enters the phase unattended.
	leave bool
}

// judge decides whether a session is to be ended, and why: a pure function of facts
// and time.
func judge(f facts, l limits) verdict {
	switch {
	case f.seen.phase == hook.Settling:
		return judgeSettling(f, l)
	case f.ruling != nil:
		return judgeRuled(f, l)
	}
	if f.seen.phase == hook.Checking {
		return judgeChecking(f, l)
	}
	if v := judgePhase(f, l); v != (verdict{}) {
		return v
	}
	return judgeTimeouts(f, l)
}

// judgePhase applies what limits the phase that a session is in, beside the limits of
// every phase.
func judgePhase(f facts, l limits) verdict {
	age := f.now.Sub(f.seen.since)
	switch f.seen.phase {
	case hook.Starting:
		return judgeStarting(f, l)
	case hook.Background:
		if backgroundOver(f, l) {
			return verdict{end: hook.EndReleased, detail: "background-timeout", abandon: true}
		}
	case hook.Unattended:
		if age >= l.idle && f.attached == 0 {
			if !f.typed.IsZero() && !f.seen.works() {
				return verdict{end: hook.EndReleased, detail: "the person who had joined it has left"}
			}
			return verdict{end: hook.EndUnattended, detail: "no turn and no hook for " + age.Round(time.Second).String()}
		}
	case hook.Waiting:
		if f.waiterGone {
			return verdict{leave: true}
		}
		if deafToYield(f) {
			return verdict{end: hook.EndReleased, detail: "another agent needs the slot"}
		}
	case hook.Ending:
		if age >= max(l.idle, parting) && f.attached == 0 {
			return verdict{end: hook.EndUnattended, detail: "the client was about to end, and has not for " + age.Round(time.Second).String()}
		}
	case hook.Turn:
		return judgeTurn(f, l)
	}
	return verdict{}
}

// judgeTurn ends a turn whose tool takes too long, or that shows no sign of life, and
// notices one that has ended without a hook.
func judgeTurn(f facts, l limits) verdict {
	if fellQuiet(f) {
		return verdict{leave: true}
	}
	if limit := l.of(f.tool); limit > 0 && f.attached == 0 && f.now.Sub(f.tool.Since) >= limit {
		return verdict{end: hook.EndTimeout, detail: fmt.Sprintf("the tool %s not done within %s", f.tool.Name, hook.Lasting(limit))}
	}
	if stalled(f, l) {
		return verdict{end: hook.EndStalled, detail: fmt.Sprintf(
			"no tool runs, and no hook, no new line in the transcript and nothing but a spinner for %s", hook.Lasting(l.stall))}
	}
	return verdict{}
}

// judgeChecking limits how long a session is kept for the verdict about its entry. No
// turn runs, so that nothing of what limits a turn applies, if the queue says so, too.
func judgeChecking(f facts, l limits) verdict {
	switch age := f.now.Sub(f.seen.since); {
	case !f.checking && !f.waits && f.attached > 0:
		return verdict{leave: true}
	case !f.checking && !f.waits:
		return verdict{end: hook.EndReleased, detail: "its check is over, and no hook waits for what follows"}
	case deafToYield(f):
		return verdict{end: hook.EndReleased, detail: "another agent needs the slot"}
	case l.hold > 0 && age >= l.hold && f.attached == 0:
		return verdict{end: hook.EndReleased, detail: fmt.Sprintf("its check takes longer than hold, %s", l.hold)}
	case overstays(f, l):
		return verdict{end: hook.EndFinished, detail: overstayed(l)}
	case !f.checking:
		return judgeTimeouts(f, l)
	}
	return verdict{}
}

// overstays reports whether the session is to end because it has lasted for as long as it
// was to: that is no failure. One that has done nothing yet, and does not wait for work, is
// for the other limits: it would be started again for ever.
func overstays(f facts, l limits) bool {
	began := f.seen.works() || f.seen.went > 0 || f.seen.phase == hook.Waiting
	return l.session > 0 && began && f.now.Sub(f.seen.started) >= l.session
}

func overstayed(l limits) string {
	return fmt.Sprintf("session-timeout of %s", hook.Lasting(l.session))
}

// judgeRuled decides when a ruling in force is carried out.
func judgeRuled(f facts, l limits) verdict {
	now := verdict{end: f.ruling.Why, detail: f.ruling.Detail}
	switch f.ruling.Why {
	case hook.EndDrained, hook.EndReleased:
		if f.now.Sub(latest(f.seen.event, f.seen.active())) < settle && f.now.Sub(f.seen.ruled) < settleMost {
			return verdict{}
		}
	case hook.EndAPIFailure:
		if f.untold && f.now.Sub(f.seen.ruled) < client.Claude.Transcript.Behind {
			return verdict{}
		}
	case hook.EndFinished, hook.EndShutdown:
		return judgeFinishing(f, l, now)
	}
	return now
}

// judgeFinishing lets the present turn end of a session that is to finish, within the
// limits for every turn. An entry that is over its timeout then is no part of a planned end:
// it would be handed over for ever.
func judgeFinishing(f facts, l limits, now verdict) verdict {
	switch {
	case overdue(f, l) && f.ruling.Why == hook.EndFinished && !f.ruling.Final:
		return tooLong(l)
	case f.ruling.Final, overdue(f, l), overlong(f, l), disobeys(f):
		return now
	case f.seen.phase == hook.Turn && !fellQuiet(f):
		return verdict{}
	case f.seen.phase == hook.Background && f.seen.works():
		if backgroundOver(f, l) {
			now.abandon = true
			return now
		}
		return verdict{}
	}
	return now
}

// judgeSettling waits until it is known whether the client has stopped, within the
// limits of a turn: until then other Stop hooks run, or the turn continues.
func judgeSettling(f facts, l limits) verdict {
	switch {
	case f.ruling != nil && f.ruling.Final:
		return verdict{end: f.ruling.Why, detail: f.ruling.Detail}
	case f.stopped || fellQuiet(f):
		return verdict{settled: true}
	case f.ruling == nil:
		return judgeTimeouts(f, l)
	}
	if f.ruling.Why.IsMeant() && !overdue(f, l) && !overlong(f, l) {
		return verdict{}
	}
	return verdict{end: f.ruling.Why, detail: f.ruling.Detail}
}

// fellQuiet reports whether the terminal has shown next to nothing for so long that
// no turn can be in progress.
func fellQuiet(f facts) bool {
	return !f.quietSince.IsZero() && f.now.Sub(latest(f.quietSince, f.seen.active())) >= client.Claude.Terminal.IdleFor
}

// backgroundOver reports whether background tasks have run for too long.
func backgroundOver(f facts, l limits) bool {
	return l.background > 0 && !f.seen.background.IsZero() && f.now.Sub(f.seen.background) >= l.background
}

// of is how long a tool may run; 0: forever.
func (l limits) of(t *Tool) time.Duration {
	if t == nil {
		return 0
	}
	if limit, ok := l.tools[t.Name]; ok {
		return limit
	}
	return l.tool
}

// stalled reports whether a turn in which no tool runs has shown no sign of life for
// too long. Somebody who has joined the session can see that for themselves.
func stalled(f facts, l limits) bool {
	return l.stall > 0 && f.tool == nil && f.attached == 0 && f.now.Sub(f.lived(l.stall)) >= l.stall
}

// takesWord is for how many stall-timeouts a session's own word counts while nothing
// else shows that it lives: a loop that it has left behind says so for ever.
const takesWord = 4

// lived is when the session last showed that it lives.
func (f facts) lived(stall time.Duration) time.Time {
	last := latest(latest(f.seen.event, f.seen.active()), latest(f.aliveAt, f.toolEnded))
	if most := last.Add(takesWord * stall); stall > 0 && f.signed.After(most) {
		return most
	}
	return latest(last, f.signed)
}

// Why a client's hooks are of no use (Outcome.Detail).
const (
	deafDetail = "the client works on its prompt, and calls none of our hooks"
	// UnseenHooks is that of a client which heartbeat cannot see.
	UnseenHooks = "its hooks are refused, as their processes cannot be seen: the client runs outside of the container that heartbeat runs in"
)

// judgeStarting limits a start, but not while a person who has joined is typing,
// for example to answer a dialog: after that the client has as long again.
func judgeStarting(f facts, l limits) verdict {
	late := l.start > 0 && f.now.Sub(f.seen.started) >= l.start
	if f.unseen && f.seen.bound.IsZero() {
		return verdict{end: hook.EndNoHooks, detail: UnseenHooks}
	}
	if !f.deafSince.IsZero() && (late || f.now.Sub(f.deafSince) >= deafness) {
		return verdict{end: hook.EndNoHooks, detail: deafDetail}
	}
	if l.start <= 0 || f.attached > 0 {
		return verdict{}
	}
	if f.seen.bound.IsZero() && f.now.Sub(latest(f.seen.started, f.typed)) >= l.start {
		return verdict{end: hook.EndStartTimeout, detail: fmt.Sprintf("the client did not begin within %s", hook.Lasting(l.start))}
	}
	if !f.seen.bound.IsZero() && f.now.Sub(latest(f.seen.bound, f.typed)) >= l.start {
		return verdict{end: hook.EndStartTimeout, detail: fmt.Sprintf("the client took no prompt within %s of its start", hook.Lasting(l.start))}
	}
	return verdict{}
}

// judgeTimeouts limits one entry, a turn without one, and the session.
func judgeTimeouts(f facts, l limits) verdict {
	if overdue(f, l) {
		return tooLong(l)
	}
	if overlong(f, l) {
		return verdict{end: hook.EndTimeout, detail: fmt.Sprintf("turn not done within %s", hook.Lasting(l.entry))}
	}
	if overstays(f, l) {
		return verdict{end: hook.EndFinished, detail: overstayed(l), afterTurn: true}
	}
	return verdict{}
}

func tooLong(l limits) verdict {
	return verdict{end: hook.EndTimeout, detail: fmt.Sprintf("entry not done within %s", hook.Lasting(l.entry))}
}

// overlong reports whether the session has done something for too long without an
// entry. Somebody who has joined it may.
func overlong(f facts, l limits) bool {
	return l.entry > 0 && !f.seen.works() && f.attached == 0 && f.seen.free >= l.entry
}

// disobeys reports whether the session was given an entry after it was ruled that
// it ends. Its hooks do not do that.
func disobeys(f facts) bool {
	return f.seen.works() && f.seen.entry.given.Sub(f.seen.ruled) > settle
}

// deafToYield reports whether a session that waits for work keeps its slot although
// it was asked for it, and nobody is typing.
func deafToYield(f facts) bool {
	return !f.asked.IsZero() && f.attached == 0 && f.now.Sub(latest(f.asked, f.seen.since)) >= yieldPatience &&
		(f.typed.IsZero() || f.now.Sub(f.typed) >= hook.TypingPause)
}

// overdue reports whether the entry in flight is over its timeout.
func overdue(f facts, l limits) bool {
	return l.entry > 0 && f.seen.works() && f.now.Sub(f.seen.entry.handedOver) >= l.entry
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
