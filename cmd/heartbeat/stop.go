package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/status"
)

type stopCmd struct {
	Now     bool          `help:"Do not let turns finish: sessions are ended at once."`
	Timeout time.Duration `placeholder:"DURATION" default:"0" help:"Give up waiting for the end after this time, with status 124; the scheduler ends all the same. 0: never."`
}

// Help implements kong's HelpProvider.
func (stopCmd) Help() string {
	return `Ends the running scheduler of the fleet, as Ctrl-C in its terminal does, and
waits until it has ended: nothing new is started, turns may finish within
shutdown-grace (30s), no session is left. With --now, also in another terminal
while the first one waits, they are ended at once; their prompts are dealt with
as after each interruption. A session of an agent may not stop its scheduler.

A scheduler that systemd runs is not started again by it.

Examples:

    heartbeat stop
    heartbeat stop --now`
}

// stopped is a scheduler that has ended.
type stopped struct {
	*status.Run
	Stopped bool `json:"stopped"`
}

// stopLook is how often it is looked whether the scheduler has ended.
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
	run, err := client.Stop(ctx, c.Now)
	if err != nil {
		return nil, controlFailure(err)
	}
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
			line.show(fmt.Sprintf("process %d ends: %s", run.PID, stillLive(ctx, client)))
		}
		if pause(ctx, stopLook) {
			continue
		}
		hint := a.ours() + " stop --now does not let turns finish"
		if errors.Is(context.Cause(ctx), errNotYet) {
			return stopped{run, false}, &failure{exitTimeout, hint, fmt.Errorf("cannot see the scheduler end within %s; it is about to", c.Timeout)}
		}
		return stopped{run, false}, &failure{exitError, hint, errors.New("cannot wait for the end of the scheduler: interrupted; it ends all the same")}
	}
	return stopped{run, true}, nil
}

// errNotYet is the cause with which --timeout ends the wait.
var errNotYet = errors.New("not yet")

// stillLive says what the end of a scheduler waits for.
func stillLive(ctx context.Context, client *control.Client) string {
	live, err := client.Status(ctx)
	if err != nil {
		return "its sessions have ended"
	}
	n := 0
	for _, a := range live.Agents {
		switch a.State {
		case status.Starting, status.Running, status.Ending:
			n++
		}
	}
	return count(n, "session") + " left"
}

func (s stopped) text(p *page) {
	if s.Stopped {
		p.printf("process %d has ended\n", s.PID)
	}
}
