package main

import (
	"context"
	"errors"

	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/workspace"
)

type unapplyCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to unapply, including agents that are no longer in the file; all if none is named." complete:"agent"`
	DryRun bool     `help:"Show what would be done, without doing it."`
}

// Help implements kong's HelpProvider.
func (unapplyCmd) Help() string {
	return `Undoes what "heartbeat apply" did. A settings file that nobody else has changed is
restored to the byte; from any other only our entries are removed. Queues stay, and
so does what --trust has recorded. If there is no record, as with another state
directory, our hooks are removed, and unapply says which permission rules stay. What
another fleet has applied since, only that fleet can undo. Without names it also
removes the copy of the file in the state directory.

Examples:

    heartbeat unapply --dry-run
    heartbeat unapply triage
    heartbeat unapply`
}

func (c unapplyCmd) run(ctx context.Context, a *app) (result, error) {
	w, err := a.wiring(ownerBy(c.DryRun))
	if err != nil {
		return nil, err
	}
	line := newProgressLine(a)
	defer line.end()
	plans, err := workspace.Unwire(w.fleet, w.stateDir, func(done, of int, agent string) { line.bar("looking at", done, of, agent) }, c.Agents...)
	if unknown, ok := errors.AsType[*workspace.UnknownError](err); ok {
		if _, err := findAgent(w.fleet, unknown.Agent); err != nil {
			return nil, err // with a hint
		}
	}
	if err != nil {
		return nil, err
	}
	res := wired{DryRun: c.DryRun, Changes: []wiredTo{}}
	var errs []error
	var undone []string
	for i, p := range plans {
		line.bar("unwiring", i, len(plans), p.Agent.Name)
		if !c.DryRun && len(p.Items) > 0 {
			if err := p.Unapply(); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		undone = append(undone, p.Agent.Name)
		res.add(p.Agent.Name, p.Items...)
		for _, note := range p.Notes {
			a.warn(note)
		}
	}
	if !c.DryRun {
		errs = append(errs, a.withdraw(ctx, w.fleet, w.stateDir, consent.Withdrawal{Agents: undone, Why: "what apply had set up for the agent was undone"}))
	}
	if !c.DryRun && len(c.Agents) == 0 && errors.Join(errs...) == nil {
		errs = append(errs, owner.Forget(w.fleet))
	}
	return res, errors.Join(errs...)
}
