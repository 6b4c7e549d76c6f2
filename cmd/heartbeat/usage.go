package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/usage"
)

type usageCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them, and those of whom there still are records, when none is named." complete:"agent"`
	Since  since    `placeholder:"TIME" default:"168h" help:"From a time on: 90m, 24h, 09:30, 2026-03-01 (${default})."`
	By     usage.By `enum:"agent,day,trigger,entry,account,session" default:"agent" help:"What a row is: agent, day, trigger, entry, account or session (${default})."`
}

// Help implements kong's HelpProvider.
func (usageCmd) Help() string {
	return `Shows what sessions have cost: turns, calls of the model, tokens by class, and
dollars. CALLS are the model's answers, one more for each round of tools. READ and
WRITTEN are what was sent again and read from the prompt cache, and what was written
to it. Dollars are the client's own figure, at list price: on a subscription nobody
bills them. What could not be seen is said below the table.

The newest records of each agent are kept, some 16 MiB.

Examples:

    heartbeat usage
    heartbeat usage triage --by entry --since 24h
    heartbeat usage --by day --since 2026-03-01 -o json`
}

// spending is what was spent, and on what.
type spending struct {
	By    usage.By    `json:"by"`
	Since time.Time   `json:"since"`
	Rows  []usage.Row `json:"rows"`
	Total usage.Sum   `json:"total"`
}

func (c usageCmd) run(_ context.Context, a *app) (result, error) {
	f, declared, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, agent := range declared {
		names = append(names, agent.Name)
	}
	if len(c.Agents) == 0 {
		past, err := usage.Agents(dir)
		if err != nil {
			return nil, err
		}
		slices.Sort(past)
		for _, name := range past {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	table := &usage.Table{By: c.By, Zone: time.Local}
	for _, name := range names {
		if err := usage.Read(dir, name, c.Since.Time, table.Add); err != nil {
			return nil, err
		}
	}
	res := spending{By: c.By, Since: c.Since.Time, Rows: []usage.Row{}}
	rows, all := table.Rows()
	res.Rows, res.Total = append(res.Rows, rows...), all
	return res, nil
}

func (s spending) text(p *page) {
	if len(s.Rows) == 0 {
		p.printf("nothing was spent since %s\n", s.Since.Local().Format(time.DateTime))
		return
	}
	named := s.By == usage.ByEntry || s.By == usage.BySession
	header := []string{strings.ToUpper(string(s.By)), "TURNS", "CALLS", "IN", "OUT", "READ", "WRITTEN", "COST"}
	if named {
		header = slices.Insert(header, 0, "TIME", "AGENT")
	}
	var rows [][]cell
	for _, r := range s.Rows {
		row := plain(append([]string{foreign.Text(r.Key).String()}, figures(r.Sum)...)...) // senders name entries
		if named {
			row = slices.Insert(row, 0, plain(r.From.Local().Format(time.DateTime), r.Agent)...)
		}
		rows = append(rows, row)
	}
	if len(s.Rows) > 1 {
		row := plain(append([]string{"all"}, figures(s.Total)...)...)
		if named {
			row = slices.Insert(row, 0, plain("", "")...)
		}
		rows = append(rows, row)
	}
	p.table(header, rows)
	p.printf("\nsince %s; dollars at list price, by the client's own figure\n", s.Since.Local().Format(time.DateTime))
	if n := s.Total.Unseen; n > 0 {
		p.printf("%s without figures: cut off before the answer was written down\n", turnsOf(n))
	}
	if n := s.Total.Unpriced; n > 0 {
		p.printf("%s without a cost: the client told none\n", turnsOf(n))
	}
	if n := s.Total.Guessed; n > 0 {
		p.printf("%s of a model whose price the client does not know: it reckons with another one's\n", turnsOf(n))
	}
}

func turnsOf(n int64) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

// figures are the columns of a sum.
func figures(s usage.Sum) []string {
	return []string{
		fmt.Sprint(s.Turns), fmt.Sprint(s.Calls),
		tokensOf(s.Input), tokensOf(s.Output), tokensOf(s.CacheRead), tokensOf(s.CacheWrite), costOf(s),
	}
}

// tokensOf is a number of tokens, in three digits.
func tokensOf(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.of {
			f := float64(n) / float64(unit.of)
			return fmt.Sprintf("%.*f%s", max(0, 3-len(fmt.Sprint(int64(f)))), f, unit.name)
		}
	}
	return fmt.Sprint(n)
}

// costOf is what a sum has cost; a part of it that nobody knows is told by a plus.
func costOf(s usage.Sum) string {
	more := ""
	if s.Unseen+s.Unpriced > 0 {
		more = "+"
	}
	switch {
	case s.Cost == 0 && more != "":
		return "?"
	case s.Cost > 0 && s.Cost < 0.1:
		return fmt.Sprintf("$%.4f%s", s.Cost, more)
	}
	return fmt.Sprintf("$%.2f%s", s.Cost, more)
}
