package main

import (
	"context"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/owner"
)

// forgetEnded has the state directory forget what it keeps of the entries of an agent's queue
// that have ended: what was set aside and is a dead letter now is not put back, whatever
// becomes of the dead letter.
func (a *app) forgetEnded(ctx context.Context, of *config.Agent) error {
	f, err := a.knownFleet()
	if err != nil {
		return err
	}
	return forgetEnded(ctx, f, of)
}

func forgetEnded(ctx context.Context, f *config.Fleet, of *config.Agent) error {
	kept, err := keptOf(f, of)
	if err == nil {
		err = kept.Ended(ctx, of)
	}
	if isMissing(err) { // there is no queue
		return nil
	}
	return err
}

// retry queues dead letters again (orchestrator.Kept.Retry).
func retry(ctx context.Context, f *config.Fleet, of *config.Agent, ids []string, all bool) (int, error) {
	kept, err := keptOf(f, of)
	if err != nil {
		return 0, err
	}
	return kept.Retry(ctx, of, ids, all)
}

// movedOn has the state directory forget what an answer to an agent's queue has passed.
func movedOn(ctx context.Context, f *config.Fleet, of *config.Agent) error {
	kept, err := keptOf(f, of)
	if err == nil {
		err = kept.MovedOn(ctx, of)
	}
	return err
}

func keptOf(f *config.Fleet, of *config.Agent) (orchestrator.Kept, error) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return orchestrator.Kept{}, err
	}
	return orchestrator.KeptOf(f, dir, of)
}
