package firing

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/attempts"
	"heartbeat/sources"
	"heartbeat/sources/poll"
)

// The variables that a gate's command gets in addition to the agent's environment.
const (
	envTrigger = "HEARTBEAT_TRIGGER" // the trigger's name
	envLabel   = "HEARTBEAT_LABEL"   // what tells this fire from the trigger's others
)

// gateTimeout limits a gate's run, maxGates how many run at once.
const (
	gateTimeout = time.Minute
	maxGates    = 64
)

// errGateLater is exit status 75, as in polls.
var errGateLater = errors.New("it asks to be tried again later")

// gate asks a trigger's command whether a fire becomes a prompt: exit 0 means yes,
// 1 means not this one. Anything else is an error, and the fire is offered again.
func (t trigger) gate(ctx context.Context, p sources.Prompt) (open bool, err error) {
	gates := t.of.f.gates
	select {
	case gates <- struct{}{}:
		defer func() { <-gates }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	env, err := t.of.f.opt.Environment(t.cfg)
	if err != nil {
		return false, err
	}
	env = append(env, hook.EnvAgent+"="+t.cfg.Name, envTrigger+"="+t.Name, envLabel+"="+p.Label)
	out, err := t.attempt(ctx, attempts.Gate, poll.Command{Argv: t.GateArgv(), Dir: t.cfg.Dir, Env: env, Timeout: gateTimeout, Quiet: true})
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
