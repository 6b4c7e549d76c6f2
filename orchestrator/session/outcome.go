package session

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/ptyrun"
)

// memoryText says whose memory ran out.
func (s *Spec) memoryText(whose ptyrun.OutOfMemory) string {
	if whose == ptyrun.OwnMemory {
		return fmt.Sprintf("it needed more memory than its limit of %d MiB", s.Limits.Memory>>20)
	}
	return "the machine had no memory left"
}

// outcome decides, in one place, why the session ended.
func (s *shim) outcome(e ending, exit ptyrun.Exit, last picture) *Outcome {
	r := s.record
	o := &Outcome{
		Why: e.why, Detail: e.detail, Loss: e.loss, Acknowledged: r.Acknowledged, Bound: !r.BoundAt.IsZero(),
		Gates: r.Gates,
	}
	if r.Work != nil {
		o.Delivery = r.Work.DeliveryID
	}
	o.Unproved = s.live.IsUnproved()
	if e.exited {
		s.exits(o, exit)
	}
	s.deaf.lookedAt = time.Time{} // a last look, at everything that it has written
	if o.Unwatched = !s.deafSince(time.Now()).IsZero(); o.Unwatched {
		switch o.Why {
		case hook.EndStartTimeout, hook.EndExited, hook.EndCrashed, hook.EndTimeout:
			o.Why, o.Detail = hook.EndNoHooks, deafDetail
		}
	}
	o.Denied, o.Strays = s.meters.course.denied, s.meters.course.strays
	if o.Acknowledged > 0 || o.Bound {
		o.Servers = s.unconnected(true)
	}
	if o.Why == hook.EndAPIFailure && s.limited() {
		o.Refused = &Refused{Told: r.Ruling.Told, Written: s.meters.course.refused}
		if line, _ := s.live.Told(); line != nil {
			o.Refused.Limits = line.Limits
		}
	}
	if why := s.unhooked(o.Why); why != "" {
		o.Detail = strings.TrimPrefix(o.Detail+"; "+why, "; ")
	}
	s.loses(o)
	o.GoesOn = r.Gated() && o.Acknowledged > 0 && (o.Why == hook.EndReleased || o.Why == hook.EndDrained)
	s.shows(o, last)
	return o
}

// exits says how a client ended that has ended by itself.
func (s *shim) exits(o *Outcome, exit ptyrun.Exit) {
	switch r := s.record; {
	case r.Ruling != nil:
		o.Why, o.Detail = r.Ruling.Why, r.Ruling.Detail
	case exit.OutOfMemory != "" && exit.Signal == "SIGKILL":
		o.Why, o.Detail, o.Signal = hook.EndOutOfMemory, s.spec.memoryText(exit.OutOfMemory), exit.Signal
	case exit.Signal != "":
		o.Why, o.Detail, o.Signal = hook.EndCrashed, "ended by "+exit.Signal, exit.Signal
	default:
		o.Why, o.ExitCode = hook.EndExited, exit.Code
	}
	if exit.Refused > 0 && (o.Why == hook.EndExited || o.Why == hook.EndCrashed) {
		o.Detail = strings.TrimPrefix(fmt.Sprintf("%s; its limit of %d processes was reached", o.Detail, s.spec.Limits.Processes), "; ")
	}
}

// loses says what was lost with the session's ground.
func (s *shim) loses(o *Outcome) {
	if what := s.ground.Differs(); o.Loss == nil && what != "" {
		o.Loss = s.lost(what)
	}
	switch {
	case o.Loss == nil:
	case o.Why == hook.EndFinished || o.Why == hook.EndShutdown: // it was told to end
	default:
		o.Why, o.Detail = hook.EndLost, o.Loss.String()
	}
}

// longestWords limits, in bytes, how much of a screen says why a client ended.
const longestWords = 160

// lastWords is the last line of a screen that is not blank: a client that ends at its start says
// there why.
func lastWords(screen string) string {
	lines := strings.Split(strings.TrimSpace(screen), "\n")
	return foreign.Short(strings.TrimSpace(lines[len(lines)-1]), longestWords)
}

// shows keeps what the screen showed where that may say why the session ended.
func (s *shim) shows(o *Outcome, last picture) {
	switch o.Why {
	case hook.EndStartTimeout, hook.EndDialog, hook.EndStalled, hook.EndExited, hook.EndCrashed, hook.EndOutOfMemory, hook.EndNoHooks:
		o.Screen = last.text()
	}
	if o.Why == hook.EndExited && !o.Bound {
		o.Detail = cmp.Or(o.Detail, lastWords(o.Screen))
	}
	if o.Why == hook.EndStartTimeout && !o.Bound && strings.TrimSpace(o.Screen) == "" {
		o.Detail += "; its screen is empty: start it there by hand to see why"
	}
	if d := client.Claude.Terminal.Asks(o.Screen); d != nil && o.Why == hook.EndStartTimeout && !o.Bound {
		o.Asks = s.spec.question(d)
		o.Detail += "; the client asks " + o.Asks.What
	}
}
