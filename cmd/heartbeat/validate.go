package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/doctor"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
)

type validateCmd struct{}

// Help implements kong's HelpProvider.
func (validateCmd) Help() string {
	return `Checks the file and lists all problems, with file:line:column. It changes nothing.
Exit status 78 means that the file has problems.

Examples:

    heartbeat validate
    heartbeat validate -f other.yaml -o json`
}

// validated is a checked file, or what is wrong with it.
type validated struct {
	File     string           `json:"file"`
	Fleet    string           `json:"fleet,omitempty"`
	Agents   []validatedAgent `json:"agents"`
	Problems []problem        `json:"problems"`
}

type validatedAgent struct {
	Agent    string   `json:"agent"`
	Dir      string   `json:"dir"`
	Mode     string   `json:"mode"`
	Triggers []string `json:"triggers"` // as NAME or KIND
	// Missing is true if the directory does not exist yet.
	Missing bool `json:"missing,omitempty"`
}

// problem is one thing that is wrong in the file, or, with the severity "warning",
// most likely not intended.
type problem struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Key      string `json:"key"`
	Message  string `json:"message"`
	Hint     string `json:"hint"`
	// Source is the line, if it can be shown.
	Source string `json:"source"`
}

func (validateCmd) run(_ context.Context, a *app) (result, error) {
	v := validated{File: a.file(), Agents: []validatedAgent{}, Problems: []problem{}}
	f, err := a.fleet()
	if err != nil {
		problems, _ := errors.AsType[config.Problems](err)
		for _, p := range problems {
			v.Problems = append(v.Problems, problemOf("error", p))
		}
		if f != nil {
			v.warn(a, f)
		}
		return v, err
	}
	v.File, v.Fleet = f.Path, f.Name
	v.warn(a, f)
	if taken, ok := errors.AsType[*owner.TakenError](owner.CheckName(f)); ok {
		a.warn(taken.Error() + "; " + taken.Hint()) // the file itself may be right
	}
	a.warnOfAnew(f)
	a.warnOfUnnamed(f)
	warnOfNoClient(a, f, f.Agents)
	warnOfFile(a, f.Agents)
	for _, agent := range f.Agents {
		row := validatedAgent{Agent: agent.Name, Dir: agent.Dir, Mode: string(agent.Mode), Triggers: []string{}, Missing: f.Missing[agent.Name]}
		for _, t := range agent.Triggers {
			row.Triggers = append(row.Triggers, t.Name)
		}
		v.Agents = append(v.Agents, row)
	}
	return v, nil
}

// warnOfNoClient warns of agents without command: whose client is not there. Of a
// command that is written down the file itself warns.
func warnOfNoClient(a *app, f *config.Fleet, agents []*config.Agent) {
	var without []string
	for _, agent := range agents {
		said := slices.ContainsFunc(f.Warnings, func(w config.Problem) bool { return isCommandOf(w, agent) })
		c := preflight.ClientOf(agent, os.Environ())
		if !said && slices.Equal(agent.Command, []string{client.Claude.Program}) && c.Known() && c.Missing() != "" {
			without = append(without, agent.Name)
		}
	}
	if len(without) > 0 {
		a.warn(fmt.Sprintf("%s, which %s would run, is not found in PATH (npm install -g @anthropic-ai/claude-code, or write command:)",
			client.Claude.Program, names(without, pageColumns)))
	}
}

// warnOfFile says what doctor finds in the file alone, once for all agents that have it.
func warnOfFile(a *app, agents []*config.Agent) {
	have := map[string][]string{}
	var order []string
	for _, found := range doctor.OfFile(agents) {
		text := fmt.Sprintf("%s: %s; %s", found.Seen, found.Why, found.Fix)
		if have[text] == nil {
			order = append(order, text)
		}
		have[text] = append(have[text], found.Agent)
	}
	for _, text := range order {
		a.warn(names(have[text], pageColumns) + ": " + text)
	}
}

// isCommandOf reports whether a warning is about the command: of an agent.
func isCommandOf(w config.Problem, a *config.Agent) bool {
	key := strings.TrimSuffix(w.Key, "[0]")
	return key == "defaults.command" || key == "agents."+a.Name+".command"
}

// warn adds what is most likely not meant.
func (v *validated) warn(a *app, f *config.Fleet) {
	for _, w := range f.Warnings {
		v.Problems = append(v.Problems, problemOf("warning", w))
	}
	if !a.out.json {
		a.warnOf(f)
	}
}

func problemOf(severity string, p config.Problem) problem {
	return problem{severity, p.File, p.Line, p.Column, p.Key, p.Message, p.Hint, p.Source}
}

// shownAgents is how many agents the text form lists.
const shownAgents = 50

func (v validated) text(p *page) {
	if v.Fleet == "" {
		return // the error says it all
	}
	p.printf("%s: ", v.File)
	p.coloured(p.green, "ok")
	p.printf(", %s\n\n", count(len(v.Agents), "agent"))
	var rows [][]cell
	missing := 0
	for i, a := range v.Agents {
		dir := a.Dir
		if a.Missing {
			missing++
			dir += " (not there yet)"
		}
		if i < shownAgents {
			rows = append(rows, plain(a.Agent, a.Mode, strconv.Itoa(len(a.Triggers)), dir))
		}
	}
	p.table([]string{"AGENT", "MODE", "TRIGGERS", "DIRECTORY"}, rows)
	if more := len(v.Agents) - shownAgents; more > 0 {
		p.printf("and %d more\n", more)
	}
	switch missing {
	case 0:
	case 1:
		p.printf("\n")
		p.saidf("A directory is not there yet; `heartbeat apply` makes it.")
	default:
		p.printf("\n")
		p.saidf("%d directories are not there yet; `heartbeat apply` makes them.", missing)
	}
}
