package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"heartbeat/hook"
	"heartbeat/sources"
	"heartbeat/sources/poll"
)

// The variables that a gate's command gets beside the agent's environment.
const (
	envTrigger = "HEARTBEAT_TRIGGER" // the trigger's name
	envLabel   = "HEARTBEAT_LABEL"   // what tells this fire from the trigger's others
)

// gateTimeout bounds a gate's run, maxGates how many run at once.
const (
	gateTimeout = time.Minute
	maxGates    = 64
)

// errGateLater is exit status 75, as polls have it.
var errGateLater = errors.New("it asks to be tried again later")

// gate asks a trigger's command whether a fire becomes a prompt: exit 0 go, 1
// not this one. Anything else is an error, and the fire is offered again.
func (s *Scheduler) gate(ctx context.Context, t trigger, p sources.Prompt) (open bool, err error) {
	select {
	case s.gates <- struct{}{}:
		defer func() { <-s.gates }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	env, err := environment(t.cfg)
	if err != nil {
		return false, err
	}
	env = append(env, hook.EnvAgent+"="+t.cfg.Name, envTrigger+"="+t.Name, envLabel+"="+p.Label)
	out, err := poll.Exec(ctx, poll.Command{Argv: t.Gate, Dir: t.cfg.Dir, Env: env, Timeout: gateTimeout, Quiet: true})
	if out.Later {
		err = errGateLater
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot ask the gate of trigger %q: %w", t.Name, err)
	}
	return true, nil
}

// span is a stretch of time; it has no end while it lasts.
type span struct{ from, to time.Time }

// keepTurns is how many turns are remembered for ignore-own: more than happen
// between a change and the look at it.
const keepTurns = 64

// turnsLocked follows an agent's turns, in which what changes in its
// directory is its own doing.
func (a *agent) turnsLocked(p hook.Phase, now time.Time) {
	in := p == hook.Turn || p == hook.Background
	last := len(a.turns) - 1
	switch lasts := last >= 0 && a.turns[last].to.IsZero(); {
	case in && !lasts:
		a.turns = append(a.turns[max(0, len(a.turns)-keepTurns+1):], span{from: now})
	case !in && lasts:
		a.turns[last].to = now
	}
}

// inTurn reports whether an agent's session was in a turn at a time.
func (s *Scheduler) inTurn(a *agent, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range a.turns {
		if !at.Before(t.from) && (t.to.IsZero() || !at.After(t.to)) {
			return true
		}
	}
	return false
}
