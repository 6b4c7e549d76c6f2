package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/status"
)

type nextCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them when none is named." complete:"agent"`
	Count  *int     `short:"n" placeholder:"N" help:"The next N fires, instead of the next one of each trigger."`
}

// Help implements kong's HelpProvider.
func (nextCmd) Help() string {
	return `Shows the next fire of each schedule in the fleet's file, in the trigger's own time
zone and in UTC; with -n the next fires of all schedules together. Triggers that
wait for files or requests or run a command have no time; they are listed below.

Examples:

    heartbeat next
    heartbeat next triage -n 30`
}

// comingFires are the next fires, and the triggers without a time.
type comingFires struct {
	Fires  []firing.Fire `json:"fires"`
	Others []timeless    `json:"others"`
	now    time.Time
}

// timeless is a trigger that fires when something happens.
type timeless struct {
	Agent   string `json:"agent"`
	Trigger string `json:"trigger"`
	When    string `json:"when"`
}

func (c nextCmd) run(_ context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 1 {
		return nil, usagef("heartbeat next --help", "-n is below 1")
	}
	_, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	res := comingFires{Fires: firing.Next(agents, now), Others: []timeless{}, now: now}
	if c.Count != nil {
		res.Fires = firing.Upcoming(agents, now, *c.Count)
	}
	for _, agent := range agents {
		for i := range agent.Triggers {
			if when := whenOf(&agent.Triggers[i]); when != "" {
				res.Others = append(res.Others, timeless{agent.Name, agent.Triggers[i].Name, when})
			}
		}
	}
	return res, nil
}

func whenOf(t *config.Trigger) string {
	switch {
	case t.Watch != nil:
		return "when " + strings.Join(t.Watch.Patterns, ", ") + " change"
	case t.Poll != nil:
		return fmt.Sprintf("asked every %s", t.Poll.Every)
	case t.Webhook != nil:
		return "when a request comes to " + t.Webhook.Path
	}
	return ""
}

func (c comingFires) text(p *page) {
	if len(c.Fires)+len(c.Others) == 0 {
		p.printf("no triggers\n")
		return
	}
	var rows [][]cell
	for _, f := range c.Fires {
		rows = append(rows, plain(
			f.Agent, f.Trigger, f.At.Format("Mon 2006-01-02 15:04:05 MST"), f.At.UTC().Format("2006-01-02 15:04:05Z"),
			"in "+status.Span(f.At.Sub(c.now)),
		))
	}
	p.table([]string{"AGENT", "TRIGGER", "LOCAL TIME", "UTC", ""}, rows)
	for _, t := range c.Others {
		p.printf("%s/%s: %s\n", t.Agent, t.Trigger, t.When)
	}
}
