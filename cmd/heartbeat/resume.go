package main

import (
	"cmp"
	"context"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

type resumeCmd struct {
	chosen
	Trigger string `placeholder:"NAME" help:"End the pause of this trigger of the agent, and nothing else." complete:"trigger"`
}

// Help implements kong's HelpProvider.
func (resumeCmd) Help() string {
	return `Lets agents continue that were paused with "heartbeat pause", or are held after too
many failures. If they are backing off or parked, that ends too. If a person has typed
in a session and left, it continues at once with the next prompt. Without a running
scheduler, the next run starts the agents. What waits for a yes or a no, has spent its
budget, or is above its "limits:" goes on waiting: then it says so and fails. A trigger
that was paused with "pause --trigger" stays paused, unless --trigger names it.

Examples:

    heartbeat resume triage
    heartbeat resume triage --trigger nightly
    heartbeat resume --all`
}

// pausedIn are the agents that a run says are paused.
func pausedIn(live *status.Live) map[string]bool {
	paused := map[string]bool{}
	if live != nil {
		for _, a := range live.Agents {
			paused[a.Agent] = !a.Paused.IsZero()
		}
	}
	return paused
}

// pausedBefore are the agents of a fleet that are paused, as its run says or, where none
// answers, the disk.
func pausedBefore(ctx context.Context, f *config.Fleet) map[string]bool {
	if live, err := askStatus(ctx, f); err == nil {
		return pausedIn(live)
	}
	paused := map[string]bool{}
	stateDir, err := owner.StateDir(f)
	if err != nil {
		return paused
	}
	kept, _ := memory.PausedOf(stateDir, f.Agents) // the resume itself says why it cannot be read
	for name := range kept {
		paused[name] = true
	}
	return paused
}

func (c resumeCmd) run(ctx context.Context, a *app) (result, error) {
	f, client, names, err := c.of(a, "resume")
	if err != nil {
		return nil, err
	}
	if err := c.one("resume", c.Trigger); err != nil {
		return nil, err
	}
	if c.Trigger != "" {
		return c.ofTrigger(ctx, a, f, client)
	}
	before := pausedBefore(ctx, f)
	ask := func(ctx context.Context) ([]status.AgentState, error) { return client.Resume(ctx, names...) }
	states, err := toRunOrNext(ctx, a, ask, a.knowing(f, c.Agents, func() ([]status.AgentState, error) {
		stateDir, err := owner.StateDir(f)
		if err != nil || !adopt.Remembers(stateDir) { // it never ran
			return nil, cmp.Or(err, control.ErrNotRunning)
		}
		return orchestrator.ResumeStopped(f, stateDir, names...)
	}))
	if err != nil {
		return nil, err
	}
	a.warnOfUnloaded(ctx, f)
	res := held{Done: "resumed", Agents: states, ours: a.ours(), lifted: before}
	if c.All {
		return res, nil
	}
	return res, res.failure()
}

// ofTrigger ends the pause of one trigger.
func (c resumeCmd) ofTrigger(ctx context.Context, a *app, f *config.Fleet, client *control.Client) (result, error) {
	ask := func(ctx context.Context) ([]status.AgentState, error) {
		return client.ResumeTrigger(ctx, c.Agents[0], c.Trigger)
	}
	states, err := toRunOrNext(ctx, a, ask, a.knowing(f, c.Agents, func() ([]status.AgentState, error) {
		stateDir, err := owner.StateDir(f)
		if err != nil || !adopt.Remembers(stateDir) { // it never ran
			return nil, cmp.Or(err, control.ErrNotRunning)
		}
		return orchestrator.ResumeTriggerStopped(f, stateDir, c.Agents[0], c.Trigger)
	}))
	if err != nil {
		return nil, err
	}
	return held{Done: "resumed", Agents: states, ours: a.ours(), trigger: c.Trigger}, nil
}
