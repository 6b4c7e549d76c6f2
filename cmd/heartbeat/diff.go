package main

import (
	"context"
	"errors"
	"strings"

	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/workspace"
)

type diffCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to look at; all of them when none is named." complete:"agent"`
}

// Help implements kong's HelpProvider.
func (diffCmd) Help() string {
	return `Shows as a unified diff what "heartbeat apply" would change, and changes nothing.
Exit status 1 means that apply would change something.

Examples:

    heartbeat diff
    heartbeat diff triage
    heartbeat diff | less`
}

// differences is what applying would change.
type differences struct {
	Changes []wiredTo `json:"changes"`
	Diff    string    `json:"diff"` // as patch(1) takes it
}

// changesFound is the exit status of a diff that is not empty; like diff(1) it
// prints no error.
type changesFound struct{}

// Error is for programs.
func (changesFound) Error() string { return "there is something to change" }

// ExitCode is that of diff(1).
func (changesFound) ExitCode() int { return exitError }

// Hint says what to do.
func (changesFound) Hint() string { return "heartbeat apply changes it" }

func (c diffCmd) run(_ context.Context, a *app) (result, error) {
	w, err := a.wiring(owner.StateDir)
	if err != nil {
		return nil, err
	}
	a.warnOfAnew(w.fleet)
	a.warnOfUnnamed(w.fleet)
	agents, err := chooseAgents(w.fleet, c.Agents)
	if err != nil {
		return nil, err
	}
	d := differences{Changes: []wiredTo{}}
	var errs []error
	line := newProgressLine(a)
	defer line.end()
	for i, agent := range agents {
		line.bar("comparing", i, len(agents), agent.Name)
		p, err := workspace.New(agent, w.stateDir, w.hook)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.add(p)
		a.warnOfForeign(p)
	}
	if len(c.Agents) == 0 {
		dropped, err := workspace.Dropped(w.fleet, w.stateDir)
		errs = append(errs, err)
		for _, p := range dropped {
			d.add(p)
		}
	}
	if err := errors.Join(errs...); err != nil || len(d.Changes) == 0 {
		return d, err
	}
	return d, changesFound{}
}

func (d *differences) add(p *workspace.Plan) {
	for _, i := range p.Items {
		if i.Change != workspace.Unchanged {
			d.Changes = append(d.Changes, wiredTo{Agent: p.Agent.Name, Change: i.Change, Path: i.Path})
		}
	}
	d.Diff += p.Diff()
}

func (d differences) text(p *page) {
	for line := range strings.Lines(d.Diff) {
		colour := ""
		switch {
		case strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ "):
			colour = p.dim
		case strings.HasPrefix(line, "-"):
			colour = p.red
		case strings.HasPrefix(line, "+"):
			colour = p.green
		case strings.HasPrefix(line, "@@"):
			colour = p.cyan
		}
		p.colouredLine(colour, line)
	}
}
