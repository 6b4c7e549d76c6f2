package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/workspace"
)

type applyCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to wire; all of them when none is named." complete:"agent"`
	DryRun bool     `help:"Say what would be done, and do nothing."`
}

// Help implements kong's HelpProvider.
func (applyCmd) Help() string {
	return `Makes .heartbeat in each agent's directory, and merges our hooks and the agent's
permission rules into its Claude Code settings. Everything else there keeps its
bytes; the first original is kept in the state directory. Applying again changes
nothing, and "heartbeat run" does it by itself before each session.

Examples:

    heartbeat apply --dry-run
    heartbeat apply
    heartbeat apply triage -o json`
}

// applied is what was done, or would be.
type applied struct {
	DryRun    bool        `json:"dry_run"`
	Items     []appliedTo `json:"items"`
	Created   int         `json:"created"`
	Changed   int         `json:"changed"`
	Removed   int         `json:"removed"`
	Unchanged int         `json:"unchanged"`
}

type appliedTo struct {
	Agent  string           `json:"agent"`
	Change workspace.Change `json:"change"`
	Path   string           `json:"path"`
}

func (c applyCmd) run(_ context.Context, a *app) (result, error) {
	fleet, err := a.fleet()
	if err != nil {
		return nil, err
	}
	agents, err := chooseAgents(fleet, c.Agents)
	if err != nil {
		return nil, err
	}
	stateDir, err := state.Dir(fleet.Name)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the running binary: %w", err)
	}
	hook, err := workspace.FindHook(self, stateDir)
	if err != nil {
		return nil, err
	}
	res := applied{DryRun: c.DryRun, Items: []appliedTo{}}
	var errs []error
	for _, agent := range agents {
		a.step("wiring " + agent.Name)
		p, err := c.apply(agent, stateDir, hook)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		res.add(p)
		if err := p.Disabled(); err != nil {
			a.warn(err.Error())
		}
	}
	return res, errors.Join(errs...)
}

func (c applyCmd) apply(agent *config.Agent, stateDir string, hook *workspace.Hook) (*workspace.Plan, error) {
	p, err := workspace.New(agent, stateDir, hook)
	if err != nil || c.DryRun {
		return p, err
	}
	return p, p.Apply()
}

// chooseAgents returns the named agents, or all of them.
func chooseAgents(f *config.Fleet, names []string) ([]*config.Agent, error) {
	if len(names) == 0 {
		return f.Agents, nil
	}
	var chosen []*config.Agent
	for _, name := range names {
		agent, err := findAgent(f, name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, agent)
	}
	return chosen, nil
}

func (r *applied) add(p *workspace.Plan) {
	for _, i := range p.Items {
		r.Items = append(r.Items, appliedTo{Agent: p.Agent.Name, Change: i.Change, Path: i.Path})
		switch i.Change {
		case workspace.Created:
			r.Created++
		case workspace.Changed:
			r.Changed++
		case workspace.Removed:
			r.Removed++
		case workspace.Unchanged:
			r.Unchanged++
		}
	}
}

func (r applied) text(p *page) {
	var rows [][]cell
	for _, i := range r.Items {
		colour := p.green
		if i.Change == workspace.Unchanged {
			colour = p.dim
		}
		rows = append(rows, []cell{{text: i.Agent}, {string(i.Change), colour}, {text: i.Path}})
	}
	p.table([]string{"AGENT", "CHANGE", "PATH"}, rows)
	p.printf("\n%d created, %d changed, %d unchanged", r.Created, r.Changed, r.Unchanged)
	if r.Removed > 0 {
		p.printf(", %d removed", r.Removed)
	}
	if r.DryRun {
		p.printf(" (nothing was done)")
	}
	p.printf("\n")
}
