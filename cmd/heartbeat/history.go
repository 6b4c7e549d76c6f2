package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

type historyCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them when none is named." complete:"agent"`
	Count  int      `short:"n" placeholder:"N" default:"20" help:"How many lines, the newest (${default})."`
}

// Help implements kong's HelpProvider.
func (historyCmd) Help() string {
	return `Shows past sessions, from the journal, and dead letters, the newest last: when,
how long, how many entries were done, and how it ended.

Examples:

    heartbeat history
    heartbeat history triage -n 100 -o json`
}

// happened is a session that ended or an entry that was given up.
type happened struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent"`
	What  string    `json:"what"` // session, dead-letter
	// Took and Done belong to a session.
	Took time.Duration `json:"took_ns,omitempty"`
	Done int           `json:"done"`
	Why  foreign.Text  `json:"why"`
	// ID is the session's, or the dead letter's.
	ID string `json:"id"`
	// short is the ID as a table shows it.
	short string
}

// pastEvents are the newest of them.
type pastEvents struct {
	Events []happened `json:"events"`
}

func (c historyCmd) run(_ context.Context, a *app) (result, error) {
	if c.Count < 1 {
		return nil, usagef("heartbeat history --help", "-n is below 1")
	}
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	agents, err := pick(f, c.Agents)
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	all := []happened{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, err
		}
		if e.Kind == journal.Ended && (len(c.Agents) == 0 || slices.Contains(c.Agents, e.Agent)) {
			all = append(all, sessionOf(e))
		}
		if len(all) > 2*c.Count {
			all = slices.Clone(all[len(all)-c.Count:])
		}
	}
	for _, agent := range agents {
		dead, err := deadOf(agent)
		if err != nil {
			a.warn(fmt.Sprintf("cannot read the dead letters of %s: %v", agent.Name, err))
		}
		all = append(all, dead...)
	}
	slices.SortStableFunc(all, func(x, y happened) int { return x.At.Compare(y.At) })
	return pastEvents{all[max(0, len(all)-c.Count):]}, nil
}

func sessionOf(e journal.Event) happened {
	h := happened{At: e.At, Agent: e.Agent, What: "session", Done: e.Acknowledged, Why: e.Reason, ID: e.Session}
	h.short, _, _ = strings.Cut(e.Session, "-")
	if !e.Started.IsZero() {
		h.Took = e.At.Sub(e.Started)
	}
	return h
}

func deadOf(a *config.Agent) ([]happened, error) {
	q, err := queue.Open(a)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var all []happened
	for d, err := range q.DeadLetters() {
		if err != nil {
			return all, err
		}
		all = append(all, happened{
			At: d.At, Agent: a.Name, What: "dead-letter", Why: foreign.Text(d.Reason),
			ID: cmp.Or(d.ID, d.DeliveryID), short: handle(d.ID, d.DeliveryID),
		})
	}
	return all, nil
}

func (h pastEvents) text(p *page) {
	if len(h.Events) == 0 {
		p.printf("nothing has happened yet\n")
		return
	}
	var rows [][]cell
	for _, e := range h.Events {
		took, done := "-", "-"
		if e.What == "session" {
			done = strconv.Itoa(e.Done)
			if e.Took > 0 {
				took = status.Span(e.Took)
			}
		}
		what := cell{text: e.What}
		if e.What == "dead-letter" {
			what.colour = p.red
		}
		rows = append(rows, []cell{
			{text: e.At.Local().Format(time.DateTime)},
			{text: e.Agent},
			what,
			{text: took},
			{text: done},
			{text: e.short},
			{text: e.Why.String()},
		})
	}
	p.table([]string{"TIME", "AGENT", "WHAT", "TOOK", "DONE", "ID", "WHY"}, rows)
}
