package main

import (
	"context"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/owner"
)

// forgetDropped has the state directory forget what was set aside of an agent's queue and
// is a dead letter now: it is not put back, whatever becomes of the dead letter.
func (a *app) forgetDropped(ctx context.Context, of *config.Agent) error {
	f, err := a.knownFleet()
	if err != nil {
		return err
	}
	return forgetDropped(ctx, f, of)
}

func forgetDropped(ctx context.Context, f *config.Fleet, of *config.Agent) error {
	asides, err := asidesOf(f, of)
	if err == nil {
		err = asides.Dropped(ctx, of)
	}
	if isMissing(err) { // there is no queue
		return nil
	}
	return err
}

func asidesOf(f *config.Fleet, of *config.Agent) (orchestrator.Asides, error) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return orchestrator.Asides{}, err
	}
	return orchestrator.AsidesOf(f, dir, of)
}
