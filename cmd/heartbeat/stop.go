package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun"
)

type stopCmd struct {
	Now     bool          `help:"Do not let turns finish; end sessions at once."`
	Timeout time.Duration `placeholder:"DURATION" default:"0" help:"Stop waiting after this time, with status 124; the scheduler still ends. 0: never."`
}

// Help implements kong's HelpProvider.
func (stopCmd) Help() string {
	return `Ends the fleet's running scheduler, as Ctrl-C in its terminal does, and waits until
it has ended: it starts nothing new, turns may finish within shutdown-grace (30s),
and no session is left. Meanwhile it names the agents that it waits for, and at the
end it says what has become of prompts whose turns did not finish. With --now, also
from another terminal while the first stop waits, sessions end at once; their
prompts are recovered as after any interruption.
An agent's session may not stop its own scheduler.

If systemd runs the scheduler, it does not start it again after this.

Examples:

    heartbeat stop
    heartbeat stop --now`
}

// stopped is a scheduler that has ended.
type stopped struct {
	*status.Run
	Stopped bool `json:"stopped"`
	// Left is true while its process is still there: it does nothing any more.
	Left bool `json:"left,omitempty"`
	// Prompts says what became, or becomes, of those that sessions worked on, by agent.
	Prompts map[string]string `json:"prompts,omitempty"`
}

// stopLook is how often to check whether the scheduler has ended.
const stopLook = 100 * time.Millisecond

func (c stopCmd) run(ctx context.Context, a *app) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	dir, err := runtimeDir(f)
	if err != nil {
		return nil, err
	}
	left := &leaving{of: f, works: map[string]status.AgentState{}}
	left.look(ctx, client)
	run, err := client.Stop(ctx, c.Now)
	if err != nil {
		return nil, controlFailure(err)
	}
	self := processOf(client)
	a.step("waiting for the end of the scheduler")
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errNotYet)
		defer cancel()
	}
	line := newProgressLine(a)
	defer line.end()
	for looks := 0; control.Answers(dir); looks++ {
		if looks%int(time.Second/stopLook) == 0 {
			line.show(fmt.Sprintf("process %d ends: %s", run.PID, left.look(ctx, client)))
		}
		if !pause(ctx, stopLook) {
			return c.early(ctx, a, run, left)
		}
	}
	line.show(fmt.Sprintf("process %d ends: it prints what it has done", run.PID))
	for began := time.Now(); self.lives(); {
		if time.Since(began) > exitPatience {
			return stopped{run, true, true, left.became(ctx, a.ours(), c.Now)}, nil
		}
		if !pause(ctx, stopLook) {
			return c.early(ctx, a, run, left)
		}
	}
	return stopped{run, true, false, left.became(ctx, a.ours(), c.Now)}, nil
}

// exitPatience is how long the process of a scheduler that has ended may take to exit.
const exitPatience = 15 * time.Second

// aProcess is a process that is watched until it has ended.
type aProcess ptyrun.Process

// processOf is the process that answered last. Where that cannot be seen, none lives.
func processOf(client *control.Client) aProcess {
	p := aProcess{PID: client.Process()}
	if p.PID > 0 {
		p.Start, _ = ptyrun.StartTimeOf(p.PID)
	}
	return p
}

// lives reports whether the process has not ended; a zombie has.
func (p aProcess) lives() bool {
	start, err := ptyrun.StartTimeOf(p.PID)
	return p.PID > 0 && p.Start != 0 && err == nil && start == p.Start
}

// early is the result where somebody does not wait until the scheduler has ended.
func (c stopCmd) early(ctx context.Context, a *app, run *status.Run, left *leaving) (result, error) {
	var foreseen map[string]string
	if c.Now {
		foreseen = left.foreseen()
	}
	res, hint := stopped{run, false, false, foreseen}, a.ours()+" stop --now does not let turns finish"
	if errors.Is(context.Cause(ctx), errNotYet) {
		return res, &failure{exitTimeout, hint, fmt.Errorf("cannot see the scheduler end within %s: %s; it still ends, and status says what it waits for", hook.Lasting(c.Timeout), left.last)}
	}
	return res, &failure{exitError, hint, fmt.Errorf("cannot wait for the end of the scheduler: interrupted: %s; it still ends", left.last)}
}

// errNotYet is the cause with which --timeout ends the wait.
var errNotYet = errors.New("not yet")

func (s stopped) text(p *page) {
	switch {
	case s.Left:
		p.saidf("the fleet is stopped, but process %d hangs while it prints (Ctrl-S, a pager or a full pipe); kill %[1]d ends it, and nothing is lost", s.PID)
	case s.Stopped:
		p.printf("process %d has ended\n", s.PID)
	}
	for _, agent := range slices.Sorted(maps.Keys(s.Prompts)) {
		p.saidf("%s: %s", agent, s.Prompts[agent])
	}
}
