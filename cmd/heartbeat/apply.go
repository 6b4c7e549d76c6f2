package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/workspace"
)

type applyCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to apply; all if none is named." complete:"agent"`
	DryRun bool     `help:"Show what would be done, without doing it."`
	Trust  bool     `help:"Also record the agents' directories as trusted in Claude Code's own file, so that it does not ask."`
	Yes    bool     `help:"With --trust: also trust directories whose own settings take effect beside ours."`
}

// Help implements kong's HelpProvider.
func (applyCmd) Help() string {
	return `Creates .heartbeat in each agent's directory, and merges our hooks and the agent's
permission rules into its Claude Code settings. Everything else in that file stays
as it is, to the byte; the state directory keeps the original. Applying again
changes nothing, and "heartbeat run" applies before each session.

Without names it also undoes what was applied for agents that are no longer in the
file; their queues stay, and status says what is left in them.

With --trust you tell Claude Code that you trust the files in a folder: they can
then change what sessions do there. If its settings, its .mcp.json, or its skills,
agents and commands allow, run or reach something that is not ours, apply lists it
and asks for --yes. With "settings: only" in the fleet's file, sessions start
without any of it.

Examples:

    heartbeat apply --dry-run
    heartbeat apply
    heartbeat apply triage -o json
    heartbeat apply --trust
    heartbeat apply --trust --yes triage`
}

func (c applyCmd) run(_ context.Context, a *app) (result, error) {
	w, err := a.wiring(ownerBy(c.DryRun))
	if err != nil {
		return nil, err
	}
	agents, err := chooseAgents(w.fleet, c.Agents)
	if err == nil && !c.DryRun {
		err = owner.CheckYours(w.fleet, agents)
	}
	if err != nil {
		return nil, err
	}
	warnOfLeft(w.fleet, a.warn)
	others := a.elsewhere(w.fleet, agents)
	for _, e := range others {
		a.warn(e.String() + ": " + e.Advice())
	}
	warnOfOldQueues(w.fleet, a.warn)
	a.warnOfAnew(w.fleet)
	a.warnOfUnnamed(w.fleet)
	warnOfNoClient(a, w.fleet, agents)
	res := wired{DryRun: c.DryRun, Changes: []wiredTo{}, next: a.ours() + " doctor says what else would keep a session from working"}
	var errs []error
	line := newProgressLine(a)
	defer line.end()
	for i, agent := range agents {
		line.bar("wiring", i, len(agents), agent.Name)
		errs = append(errs, c.wire(a, w, agent, &res))
	}
	if !c.DryRun {
		a.remember(w.fleet)
		a.mark(w.fleet, slices.DeleteFunc(slices.Clone(agents), func(agent *config.Agent) bool {
			return isRun(agent) || slices.ContainsFunc(others, func(e owner.Elsewhere) bool { return slices.Contains(e.Agents, agent.Name) })
		}))
	}
	if len(c.Agents) == 0 {
		errs = append(errs, c.dropped(a, w, &res))
	}
	return res, errors.Join(errs...)
}

// isRun reports whether a run has the agent and has marked it.
func isRun(agent *config.Agent) bool { return flock.Held(agent.Dir) }

func (c applyCmd) wire(a *app, w *wiring, agent *config.Agent, res *wired) error {
	wire := workspace.Apply
	if c.DryRun {
		wire = workspace.New
	}
	p, err := wire(agent, w.stateDir, w.hook)
	if err != nil {
		return err
	}
	res.add(agent.Name, p.Items...)
	for _, o := range p.Obstacles {
		a.warn(fmt.Sprintf("agent %q: %s; %s", agent.Name, o.Seen, o.Fix))
	}
	if !c.Trust {
		a.warnOfForeign(p)
		return nil
	}
	if len(p.Foreign) > 0 && !c.Yes && !c.DryRun {
		return &foreignError{agent: agent.Name, ours: a.ours(), found: p.Foreign}
	}
	a.warnOfForeign(p)
	item, err := workspace.Trust(agent, c.DryRun)
	if err != nil {
		return err
	}
	res.add(agent.Name, item)
	return nil
}

// foreignError means that a directory is not trusted before a person has seen what
// is in it.
type foreignError struct {
	agent, ours string
	found       []preflight.Foreign
}

// Error lists it.
func (e *foreignError) Error() string {
	says := []string{fmt.Sprintf("cannot trust the directory of agent %q: it has settings of its own, which count beside ours:", e.agent)}
	for _, f := range e.found {
		says = append(says, f.String())
	}
	return strings.Join(says, "\n  ")
}

// Hint says what to do.
func (e *foreignError) Hint() string {
	return fmt.Sprintf("if you want all of it: %s apply --trust --yes %s; otherwise `settings: only` starts its sessions without it", e.ours, e.agent)
}

// dropped unwires agents that are no longer declared.
func (c applyCmd) dropped(a *app, w *wiring, res *wired) error {
	plans, err := workspace.Dropped(w.fleet, w.stateDir)
	if err != nil {
		return err
	}
	var errs []error
	line := newProgressLine(a)
	defer line.end()
	for i, p := range plans {
		line.bar("unwiring", i, len(plans), p.Agent.Name)
		if !c.DryRun {
			err := p.Unapply()
			if running, ok := errors.AsType[*workspace.RunningError](err); ok {
				a.warn(running.Error() + "; " + withOurs(a.ours(), running.Hint()))
				continue
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
		}
		res.add(p.Agent.Name, p.Items...)
	}
	return errors.Join(errs...)
}
