package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/workspace"
)

// wiring is what commands need to bring directories in line with the fleet's file.
type wiring struct {
	fleet    *config.Fleet
	stateDir string
	hook     *workspace.Hook
}

// wiring loads them; state is owner.Claim, or StateDir for commands that only look.
func (a *app) wiring(state func(*config.Fleet) (string, error)) (*wiring, error) {
	fleet, err := a.fleet()
	if err != nil {
		return nil, err
	}
	a.warnOf(fleet)
	stateDir, err := state(fleet)
	if err != nil {
		return nil, err
	}
	hook, err := workspace.FindHook(session.Self(), stateDir)
	return &wiring{fleet: fleet, stateDir: stateDir, hook: hook}, err
}

// ownerBy is how a command gets at the state: it claims it, unless it is a dry run.
func ownerBy(dryRun bool) func(*config.Fleet) (string, error) {
	if dryRun {
		return owner.StateDir
	}
	return owner.Claim
}

// warnOf repeats what is allowed in the fleet's file but most likely not intended.
func (a *app) warnOf(f *config.Fleet) {
	for _, w := range f.Warnings {
		a.warn(w.String())
	}
}

// warnOfAnew says which triggers will start over once the file is run.
func (a *app) warnOfAnew(f *config.Fleet) {
	for _, n := range owner.BeginAnew(f) {
		a.warn(n.String() + "; " + n.Hint())
	}
}

// warnOfUnnamed says who waits for replies, and is not in the file.
func (a *app) warnOfUnnamed(f *config.Fleet) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return // the caller that needs it reports it
	}
	all, err := notify.Unnamed(dir, f, time.Now())
	if err != nil {
		a.warn(err.Error())
	}
	for _, o := range all {
		a.warn(o.String())
	}
}

// mostForeign is how much is said about one directory.
const mostForeign = 10

// warnOfForeign says what an agent's directory tells the client in addition to
// ours.
func (a *app) warnOfForeign(p *workspace.Plan) {
	if len(p.Foreign) > 0 {
		a.warn(fmt.Sprintf("agent %q: its directory has settings of its own, which count beside ours: %s; `settings: only` starts its sessions without them",
			p.Agent.Name, foreignOf(p, p.Foreign)))
	}
	if len(p.Timed) == 0 {
		return
	}
	who := "its sessions do not get them, but a claude that you start there does"
	if p.Timetable {
		who = "its sessions get them, as permissions.allow names a tool of the client's timetable"
	}
	a.warn(fmt.Sprintf("agent %q: its directory has prompts that Claude Code gives itself, as if you had typed them: %s; %s",
		p.Agent.Name, foreignOf(p, p.Timed), who))
}

// foreignOf is what files of an agent's directory say, on one line.
func foreignOf(p *workspace.Plan, all []preflight.Foreign) string {
	var says []string
	for _, f := range all[:min(len(all), mostForeign)] {
		if rel, err := filepath.Rel(p.Agent.Dir, f.File); err == nil {
			f.File = rel
		}
		says = append(says, f.String())
	}
	if more := len(all) - mostForeign; more > 0 {
		says = append(says, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(says, "; ")
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

// wired is what was done to files and folders, or would be.
type wired struct {
	DryRun    bool      `json:"dry_run"`
	Changes   []wiredTo `json:"changes"`
	Created   int       `json:"created"`
	Changed   int       `json:"changed"`
	Removed   int       `json:"removed"`
	Unchanged int       `json:"unchanged"`
	next      string    // what to type now, or ""
}

type wiredTo struct {
	Agent  string           `json:"agent"`
	Change workspace.Change `json:"change"`
	Path   string           `json:"path"`
}

func (r *wired) add(agent string, items ...workspace.Item) {
	for _, i := range items {
		r.Changes = append(r.Changes, wiredTo{Agent: agent, Change: i.Change, Path: i.Path})
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

func (r wired) text(p *page) {
	var rows [][]cell
	for _, i := range r.Changes {
		colour := p.green
		switch i.Change {
		case workspace.Unchanged:
			colour = p.dim
		case workspace.Removed:
			colour = p.yellow
		}
		rows = append(rows, []cell{{text: i.Agent}, {string(i.Change), colour}, {text: i.Path}})
	}
	p.table([]string{"AGENT", "CHANGE", "PATH"}, rows)
	if len(rows) > 0 {
		p.printf("\n")
	}
	p.printf("%d created, %d changed, %d unchanged", r.Created, r.Changed, r.Unchanged)
	if r.Removed > 0 {
		p.printf(", %d removed", r.Removed)
	}
	if r.DryRun {
		p.printf(" (nothing was done)")
	}
	p.printf("\n")
	if r.next != "" && !r.DryRun && r.Created+r.Changed > 0 {
		p.printf("Next: %s\n", r.next)
	}
}
