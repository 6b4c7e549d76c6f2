package orchestrator

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/stophooks"
)

// meet completes a session's policy with what is known of the Stop hooks beside
// ours. One that has had a client go on is a gate, with a good reason maybe ("run
// the tests first"): it gets to finish, so the session takes one entry.
func (s *Scheduler) meet(a *agent, p *hook.Policy, present stophooks.Present) error {
	p.ForeignStopHooks = present.Any() || p.Foreign == hook.ForeignGate
	if p.Gated = p.Foreign == hook.ForeignGate; p.Foreign != hook.ForeignLearn {
		return nil
	}
	gates, err := s.stopHooks.Gates(a.key, present)
	p.Gated = len(gates) > 0
	return err
}

// learn remembers the Stop hooks that had the client go on in a session.
func (s *Scheduler) learn(a *agent, o session.Outcome) {
	known := slices.DeleteFunc(slices.Clone(o.Gates), func(c string) bool { return c == "" })
	anew, err := s.stopHooks.Learn(a.key, known, time.Now())
	if err != nil {
		s.log.Warn("cannot remember a Stop hook", "agent", a.name, "err", err)
	}
	for _, command := range anew {
		s.note(journal.Event{Agent: a.name, Kind: journal.StopHook, Reason: "it had the client go on, or stop, where heartbeat had not", Detail: foreign.Text(command)})
		s.log.Warn("a Stop hook that is not heartbeat's had the client go on, or stop", "agent", a.name, "hook", command)
	}
}

// goesOnLocked decides how long the conversation of a session goes on that ended
// because it takes one entry: as long as the session would have lived. Whatever
// has it take one, `context: session` promises that what is queued shares a
// conversation; `context: entry` wants a new one for each entry anyway.
func (a *agent) goesOnLocked(c *config.Agent, o session.Outcome, left bool, now time.Time) {
	switch {
	case !o.GoesOn || c.Context != hook.ContextSession:
		if o.Acknowledged > 0 || o.Bound {
			a.goesOn = time.Time{}
		}
	case left:
		a.goesOn = now.Add(resumeWithin)
	case c.Mode == hook.Persist:
		a.goesOn = now.Add(c.IdleInterval)
	default:
		a.goesOn = time.Time{}
	}
}

// resumeWithin is how long what is queued may wait, for a slot say, and still go
// on in the conversation.
const resumeWithin = 24 * time.Hour

// goingOn is until when a new session goes on in the last conversation.
func (s *Scheduler) goingOn(a *agent) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.goesOn
}

// runaway is what follows when hooks that are not ours had a client go on until
// the session was ended: it would be the same again.
func runaway(o session.Outcome) next {
	return next{state: Held, reason: fmt.Sprintf("%s; let that Stop hook allow the end of a turn, or remove it, then `heartbeat resume`", describe(o))}
}
