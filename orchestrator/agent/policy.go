package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/sources"
)

// Back-off after failures: base, doubled for each further one up to the limit, then
// drawn from the upper half (jitter).
const (
	backoffBase = 2 * time.Second
	backoffMax  = 5 * time.Minute
)

// restartRule limits restarts of one agent.
type restartRule struct {
	max    int
	window time.Duration
}

// history is what the policy remembers of an agent's failures.
type history struct {
	failures int     // in a row, without an acknowledgement
	restarts []spent // failures of sessions and of their starts, within the window
	refusals []spent // requests that the API refused, within the window
	poisons  int     // entries in a row that were given up for them, none done in between
}

// spent is one failure, and the delivery that was in flight, or "".
type spent struct {
	at time.Time
	on string
}

// next is what follows a session's end.
type next struct {
	state   status.State
	until   time.Time // for backing-off
	reason  string
	parking Parking // for parked
	// lasts is true for an agent held until a person says so, also in the next run.
	lasts bool
	// fix is what to change first, where that is known. blocks is true for an agent
	// whose sessions cannot work before that; see blocked.
	fix    string
	blocks bool
}

// after is the restart policy: a pure function of how a session ended, whether work
// is left in the queue, what happened before, and time. A session is good if it
// acknowledged an entry; one that left work and acknowledged none is a failure,
// whatever it says, or it would be started forever.
func after(o session.Outcome, left bool, h history, rule restartRule, now time.Time, roll float64) (next, history) {
	if o.Acknowledged > 0 {
		h = history{}
	}
	switch o.Why {
	case hook.EndFinished, hook.EndShutdown, hook.EndOverBudget:
		return next{state: status.Idle, reason: Describe(o)}, h
	case hook.EndDrained, hook.EndReleased:
		if o.Acknowledged > 0 || !left || o.Unproved {
			return next{state: status.Idle, reason: Describe(o)}, h
		}
	case hook.EndNoHooks:
		n := next{state: status.Held, lasts: true, reason: Describe(o)}
		if o.Detail == session.UnseenHooks {
			n.fix = "have `command:` run it where heartbeat sees its processes (heartbeat help unattended)"
		}
		return n, h
	case hook.EndRunaway:
		if len(o.Gates) > 0 {
			return runaway(o), h
		}
	case hook.EndStartTimeout:
		if o.Asks != nil {
			return next{state: status.Held, reason: "the client asks " + o.Asks.What, fix: o.Asks.Do, blocks: true}, h
		}
	case hook.EndAPIFailure, hook.EndTimeout, hook.EndUnattended, hook.EndStalled, hook.EndDialog,
		hook.EndCrashed, hook.EndExited, hook.EndOutOfMemory:
	}
	return failed(o, h, rule, now, roll)
}

// failed counts a failure, each kind separately: temporary failures hold no agent, and refused
// requests do not count towards failures to start a session.
func failed(o session.Outcome, h history, rule restartRule, now time.Time, roll float64) (next, history) {
	h.failures++
	count, what := &h.restarts, "failures"
	if o.Why == hook.EndAPIFailure {
		count, what = &h.refusals, "refused requests"
	}
	if !passes(o) {
		*count = append(rule.recent(*count, now), spent{now, o.Delivery})
		if len(*count) > rule.max {
			// What prevented a session from starting costs nothing and is checked
			// again.
			return next{state: status.Held, lasts: o.Why != "", reason: fmt.Sprintf("%d %s within %s, the last: %s",
				len(*count), what, hook.Lasting(rule.window), Describe(o))}, h
		}
	}
	d := sources.Backoff(h.failures, backoffBase, backoffMax, roll)
	return next{state: status.BackingOff, until: now.Add(d), reason: Describe(o)}, h
}

// passes reports whether a failure is that of the service or of a machine without
// room: neither the agent nor its entry can do anything about it.
func passes(o session.Outcome) bool {
	return o.NoRoom || o.Why == hook.EndAPIFailure && faultOf(o.Detail) == client.ServiceFault
}

// recent returns those failures that are within the window.
func (r restartRule) recent(all []spent, now time.Time) []spent {
	recent := all[:0:0]
	for _, f := range all {
		if now.Sub(f.at) < r.window {
			recent = append(recent, f)
		}
	}
	return recent
}

// maxPoisons is how many entries in a row are given up for what may be their own fault. After
// that many it is not their fault.
const maxPoisons = 3

// poisonous reports whether all the failures that an agent may have within its window were
// refusals of the one entry that was in flight when this session ended, and may be the entry's
// fault. Then the entry is given up, and the agent is not held.
func poisonous(o session.Outcome, h history, rule restartRule, now time.Time) bool {
	if o.Why != hook.EndAPIFailure || faultOf(o.Detail) != client.SuspectFault || o.Delivery == "" || h.poisons >= maxPoisons {
		return false
	}
	if o.Acknowledged > 0 {
		h = history{}
	}
	recent := rule.recent(h.refusals, now)
	return len(recent)+1 > rule.max && !slices.ContainsFunc(recent, func(f spent) bool { return f.on != o.Delivery })
}

// poisoned returns what follows when an entry was given up.
func poisoned(o session.Outcome, h history) (next, history) {
	return next{state: status.Idle, reason: "entry " + o.Delivery + " was given up: " + Describe(o)}, history{restarts: h.restarts, poisons: h.poisons + 1}
}

// Counts reports whether an interruption uses up one of an entry's attempts: only
// if the client really ran, we did not want the end, and neither the service nor
// the account was at fault.
func Counts(o session.Outcome) bool {
	switch o.Why {
	case hook.EndDialog, hook.EndStartTimeout, hook.EndNoHooks, hook.EndFinished, hook.EndShutdown:
		return false
	case hook.EndAPIFailure:
		return o.Bound && faultOf(o.Detail) == client.RequestFault
	}
	return o.Bound
}

// Fatal reports whether a session died of what it had been given, as far as can be told:
// its end counts, and came by itself or because it had got stuck, with an entry in flight.
// Then the entry has used up an attempt even if nothing proves that it arrived. A client
// that dies before it begins, or before it is handed anything, dies of something else.
func Fatal(o session.Outcome) bool {
	switch o.Why {
	case hook.EndLost, hook.EndDrained, hook.EndReleased, hook.EndOverBudget:
		return false
	}
	return o.Delivery != "" && Counts(o)
}

// exhausted returns what follows when the entry in flight has used up its attempts with the
// end of a session, after which n would follow. If maxPoisons entries in a row have, and
// none was done in between, it is not their fault: the agent is held for its failures,
// however far apart they are, before everything that is queued is a dead letter.
func exhausted(o session.Outcome, n next, h history, rule restartRule) (next, history) {
	if h.poisons++; h.poisons < maxPoisons || h.failures <= rule.max || n.state == status.Held {
		return n, h
	}
	return next{state: status.Held, lasts: true, reason: fmt.Sprintf("%d prompts in a row ended each session that they were given to, the last: %s",
		h.poisons, Describe(o))}, h
}

// afterEnd returns what follows the end of a session, and the failures from then on.
func afterEnd(e End, h history, rule restartRule, now time.Time, roll float64) (n next, _ history) {
	switch {
	case e.Poison && e.Unrecovered == nil:
		return poisoned(e.Outcome, h)
	case e.Parks == nil:
		if n, h = after(e.Outcome, e.Left, h, rule, now, roll); e.Exhausted {
			return exhausted(e.Outcome, n, h, rule)
		}
		return n, h
	case e.Acknowledged > 0:
		h = history{}
	}
	return next{state: status.Parked, parking: *e.Parks}, h
}

// Describe returns one line about how a session ended.
func Describe(o session.Outcome) string {
	s := string(o.Why)
	if o.Why == hook.EndExited {
		s = fmt.Sprintf("exited with code %d", o.ExitCode)
	}
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	if len(o.Denied) > 0 {
		s += "; " + session.DeniedText(o.Denied)
	}
	if len(o.Servers) > 0 {
		s += "; " + session.ServersText(o.Servers)
	}
	return s
}

// Roll draws the jitter of a delay, in [0, 1).
func Roll() float64 { return rand.Float64() }

// runaway returns what follows when hooks that are not ours continued a client
// until the session was ended: it would happen again.
func runaway(o session.Outcome) next {
	return next{state: status.Held, lasts: true, reason: Describe(o), fix: "let that Stop hook allow the end of a turn, or remove it"}
}
