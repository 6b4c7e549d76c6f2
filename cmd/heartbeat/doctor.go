package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/doctor"
	"heartbeat/orchestrator/doors"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/oldqueue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

type doctorCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to look at; all of them when none is named." complete:"agent"`
	Fix    bool     `help:"Repair what can be repaired without harm, then check again."`
	Probe  bool     `help:"Instead, try on the installed client what heartbeat relies on: offline, nothing is paid."`
	Client string   `placeholder:"FILE" help:"With --probe: try this client; no fleet is needed." complete:"file"`
}

// Help implements kong's HelpProvider.
func (doctorCmd) Help() string {
	return `Finds what would keep the fleet from working: hooks that cannot run or that the
client ends while they wait, dialogs that nobody would answer, a client that is
missing or not logged in, agents that are held, paused or fail repeatedly, triggers
that fail, permission rules that never match, queues that are stuck or not
accessible, a state directory that this fleet may not use, a machine that is too
small. It changes nothing and runs nothing but "claude --version".

With --fix it sets up the directories as "heartbeat apply" does, recovers entries
whose session is gone, makes heartbeat's hook program executable, ends leftover
processes of dead sessions and removes stale temporary files.

With --probe it tries the client that the agents' sessions start: the hooks and what
they are told, prompts by Stop hook, the block cap, the transcript, permissions,
failures, --resume, the status line, signals. These are short sessions with an API
of heartbeat's own on this machine, with an empty home, no variables of yours and a
key that is made up: nothing is paid, and on Linux nothing can leave the machine,
where the system allows a network namespace (it says where not). It takes about
half a minute and names each promise that the client does not keep. "heartbeat run"
does the same with a client that it has not seen (client-drift in heartbeat.yaml).

Exit status 1 means that there are errors; with only warnings it is 0. With --probe
it means that a client breaks a promise, or could not be tried.

Examples:

    heartbeat doctor
    heartbeat doctor triage --fix
    heartbeat doctor --probe
    heartbeat doctor --probe --client ~/.local/bin/claude
    heartbeat doctor -o json`
}

// examined is what was found, and what was repaired before.
type examined struct {
	Counts   examinedCounts   `json:"counts"`
	Mended   []doctor.Mended  `json:"mended"`
	Findings []doctor.Finding `json:"findings"`
	ours     string
}

// examinedCounts are how many agents were examined, and how many findings there are
// of each severity.
type examinedCounts struct {
	Agents  int `json:"agents"`
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

func (c doctorCmd) run(ctx context.Context, a *app) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	switch {
	case c.Probe && c.Fix:
		return nil, usagef("heartbeat doctor --probe", "--probe does not go with --fix")
	case c.Probe:
		return c.probe(ctx, a)
	case c.Client != "":
		return nil, usagef("heartbeat doctor --probe --client FILE", "--client goes with --probe")
	}
	fleet, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	look, err := c.look(ctx, a, fleet, agents)
	if err != nil {
		return nil, err
	}
	line := newProgressLine(a)
	defer line.end()
	a.warnOfAnew(fleet)
	a.warnOfUnnamed(fleet)
	look.Step = func(done, of int, agent string) { line.bar("looking at", done, of, agent) }
	facts, err := doctor.Collect(ctx, look)
	if err != nil {
		return nil, err
	}
	e := examined{ours: a.ours(), Counts: examinedCounts{Agents: len(agents)}, Mended: []doctor.Mended{}, Findings: doctor.Examine(facts)}
	if c.Fix {
		a.step("repairing")
		e.Mended = append(e.Mended, doctor.Mend(ctx, facts, e.Findings)...)
		if facts, err = doctor.Collect(ctx, look); err != nil {
			return e, err
		}
		e.Findings = doctor.Examine(facts)
	}
	if e.Findings == nil {
		e.Findings = []doctor.Finding{}
	}
	e.count()
	return e, e.failure(a.ours())
}

func (c doctorCmd) look(ctx context.Context, a *app, fleet *config.Fleet, agents []*config.Agent) (doctor.Look, error) {
	stateDir, stateProblem := ownerBy(!c.Fix)(fleet)
	self, err := os.Executable()
	if err != nil {
		return doctor.Look{}, fmt.Errorf("cannot find the running binary: %w", err)
	}
	var scheduler *doctor.Scheduler
	var addresses []status.Door
	var troubles []store.Trouble
	runs := whoRuns(ctx, fleet, stateDir)
	switch {
	case runs.live != nil:
		scheduler = &doctor.Scheduler{PID: runs.live.PID, Started: runs.live.Started, Agents: runs.live.Agents}
		addresses, troubles = runs.live.Doors, runs.live.Store
		scheduler.OtherProgram = otherProgram(runs.live.Run)
	case runs.err != nil:
		a.warn(runs.err.Error())
	case runs.mute == nil && runs.begun.IsZero():
		addresses = doors.Foresee(fleet.Listen)
	}
	if runs.live == nil {
		troubles = store.ExamineWhole(ctx, stateDir, time.Now())
	}
	untold, unpinged := notify.Untold(stateDir, time.Now())
	return doctor.Look{
		Scheduler: scheduler, Mute: runs.mute, LastRun: runs.ended, Doors: addresses, Store: troubles, StateProblem: stateProblem, Untold: untold, Unpinged: unpinged, Unwatched: fleet.Ping == nil && len(fleet.Targets) > 0,
		OldQueues: oldqueue.Waiting(stateDir, fleet.Agents), Elsewhere: a.elsewhere(fleet, agents),
		Budgets: status.BudgetsOf(fleet, stateDir, time.Now()), FileWarnings: fleet.Warnings, Agents: agents, MaxSessions: fleet.MaxSessions, StateDir: stateDir, Broken: a.broken, File: fleet.Path, Self: self, Env: os.Environ(), Ours: a.ours(),
	}, nil
}

func (e *examined) count() {
	for _, f := range e.Findings {
		switch f.Severity {
		case doctor.Error:
			e.Counts.Error++
		case doctor.Warning:
			e.Counts.Warning++
		case doctor.Info:
			e.Counts.Info++
		}
	}
}

// unhealthy is how many errors doctor has found; people have read each of them.
type unhealthy string

// Error is for programs.
func (u unhealthy) Error() string { return "doctor has found " + string(u) }

func (e *examined) failure(ours string) error {
	if e.Counts.Error == 0 {
		return nil
	}
	hint := ""
	if e.fixable() {
		hint = ours + " doctor --fix repairs some of it"
	}
	return &failure{status: exitError, hint: hint, err: unhealthy(count(e.Counts.Error, "error"))}
}

func (e *examined) fixable() bool {
	return slices.ContainsFunc(e.Findings, func(f doctor.Finding) bool { return f.Fixable })
}

func (e examined) text(p *page) {
	for _, m := range e.Mended {
		e.mendedText(p, m)
	}
	drifted := e.drifted()
	if len(drifted) >= leastDrifted {
		e.Findings = slices.DeleteFunc(slices.Clone(e.Findings), isDrift)
		p.coloured(p.yellow, string(doctor.Warning))
		p.rest(len(doctor.Warning), foreignIndent, fmt.Sprintf(" not-applied: the directories of %s are not as declared (%s and others); `heartbeat run` applies that before each session",
			count(len(drifted), "agent"), strings.Join(drifted[:2], ", ")))
		p.coloured(p.dim, "    fix   ")
		p.advice(doctorIndent, e.ours+" apply")
		p.printf("\n")
	}
	var agents []string
	for _, f := range e.Findings {
		if !slices.Contains(agents, f.Agent) {
			agents = append(agents, f.Agent)
		}
	}
	for _, agent := range agents {
		title := agent
		if agent == "" {
			title = "this machine"
		}
		p.printf("%s\n", title)
		for _, f := range e.Findings {
			if f.Agent == agent {
				findingText(p, f)
			}
		}
		p.printf("\n")
	}
	e.sum(p)
}

// leastDrifted is of how many agents it is said in one line that nobody has applied
// what is declared for them.
const leastDrifted = 3

func isDrift(f doctor.Finding) bool { return f.Code == "not-applied" && f.Severity == doctor.Warning }

// drifted are the agents whose directories are not as declared, and could be.
func (e examined) drifted() (agents []string) {
	for _, f := range e.Findings {
		if isDrift(f) {
			agents = append(agents, f.Agent)
		}
	}
	return agents
}

func (examined) mendedText(p *page, m doctor.Mended) {
	who := m.Agent
	if who == "" {
		who = "this machine"
	}
	what, colour, text := "repaired", p.green, m.Done
	if m.Error != "" {
		what, colour, text = "not repaired", p.red, m.Error
	}
	p.coloured(colour, what)
	p.rest(len(what), foreignIndent, fmt.Sprintf(" %s (%s): %s", who, strings.Join(m.Codes, ", "), text))
}

// doctorIndent is the width of what precedes the text of a finding: marks and
// labels.
const doctorIndent = 10

func findingText(p *page, f doctor.Finding) {
	colour := map[doctor.Severity]string{doctor.Error: p.red, doctor.Warning: p.yellow, doctor.Info: p.cyan}[f.Severity]
	p.printf("  ")
	p.coloured(colour, string(f.Severity))
	p.printf(" %s", f.Code)
	if f.Fixable {
		p.coloured(p.dim, " (--fix repairs it)")
	}
	p.printf("\n")
	labelled(p, "seen", f.Seen)
	labelled(p, "why", f.Why)
	p.coloured(p.dim, fmt.Sprintf("    %-6s", "fix"))
	p.advice(doctorIndent, f.Fix)
}

func (e examined) sum(p *page) {
	if len(e.Findings) == 0 {
		p.coloured(p.green, "nothing found")
		p.printf(" (%s)\n", count(e.Counts.Agents, "agent"))
		return
	}
	notes := ""
	if e.Counts.Info > 0 {
		notes = ", " + count(e.Counts.Info, "note")
	}
	if e.fixable() {
		notes += "; " + p.ours + " doctor --fix repairs some of it"
	}
	p.saidf("%s: %s, %s%s", count(e.Counts.Agents, "agent"), count(e.Counts.Error, "error"), count(e.Counts.Warning, "warning"), notes)
}
