package main

import (
	"context"
	"errors"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/owner"
)

type resumeCmd struct{ chosen }

// Help implements kong's HelpProvider.
func (resumeCmd) Help() string {
	return `Lets agents continue that were paused with "heartbeat pause", or are held after too
many failures. If they are backing off or parked, that ends too. Without a running
scheduler, the next run starts them.

Examples:

    heartbeat resume triage
    heartbeat resume --all`
}

func (c resumeCmd) run(ctx context.Context, a *app) (result, error) {
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	names, err := c.names("resume", f)
	if err != nil {
		return nil, err
	}
	states, err := client.Resume(ctx, names...)
	if stateDir, no := owner.StateDir(f); no == nil && errors.Is(err, control.ErrNotRunning) && journal.Exists(stateDir) {
		states, err = orchestrator.ResumeStopped(f, stateDir, names...)
	}
	if err != nil {
		return nil, controlFailure(err)
	}
	return held{"resumed", states}, nil
}
