package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

type nextCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them when none is named." complete:"agent"`
	Count  *int     `short:"n" placeholder:"N" help:"The next N fires, instead of the next one of each trigger."`
}

// Help implements kong's HelpProvider.
func (nextCmd) Help() string {
	return `Shows the next fire of each schedule in the fleet's file, in the trigger's own time
zone (the scheduler's, where it has none) and in UTC; with -n the next fires of all schedules together. Triggers that
wait for files or requests or run a command have no time; they are listed below, and so
are the prompts that wait for theirs (heartbeat send --at). Urgent ones are marked.

Examples:

    heartbeat next
    heartbeat next triage -n 30`
}

// comingFires are the next fires, and the triggers without a time.
type comingFires struct {
	Fires  []firing.Fire `json:"fires"`
	Others []timeless    `json:"others"`
	// Sends are the prompts that wait for their time (send --at).
	Sends []waiting `json:"sends"`
	now   time.Time
	zone  string // what is to be said of the time zone, or ""
	idle  string // that nobody runs the fleet, where that is wanted, or ""
}

// waiting is a prompt that is to be sent.
type waiting struct {
	Agent  string       `json:"agent"`
	ID     string       `json:"id"`
	At     time.Time    `json:"at"`
	Urgent bool         `json:"urgent"`
	Prompt foreign.Text `json:"prompt"`
	// Unsent is since when it is not sent although it is due, and why, as far as a running
	// scheduler says.
	Unsent *status.Unable `json:"unsent,omitempty"`
}

// whyUnsent says why prompts of an agent that are due are not sent yet.
func whyUnsent(live *status.Live, agent string) foreign.Text {
	if live == nil {
		return "it is sent as soon as a scheduler runs"
	}
	for _, s := range live.Agents {
		switch {
		case s.Agent != agent:
		case s.Unsent != nil:
			return "it cannot be queued: " + s.Unsent.Why + "; it is tried again"
		default:
			return "it is about to be sent"
		}
	}
	return "it is sent as soon as a scheduler runs the agent"
}

// timeless is a trigger that fires when something happens.
type timeless struct {
	Agent   string `json:"agent"`
	Trigger string `json:"trigger"`
	When    string `json:"when"`
	Urgent  bool   `json:"urgent"`
}

func (c nextCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 1 {
		return nil, usagef("heartbeat next --help", "-n is below 1")
	}
	fleet, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	zone := zoneText(inZoneOfRun(fleet, now))
	paused := pausedTriggers(ctx, fleet, agents)
	res := comingFires{Fires: firing.Next(agents, paused, now), Others: []timeless{}, Sends: []waiting{}, now: now, zone: zone, idle: idleText(fleet, now)}
	if c.Count != nil {
		res.Fires = firing.Upcoming(agents, paused, now, *c.Count)
	}
	live := sync.OnceValue(func() *status.Live {
		live, err := askStatus(ctx, fleet)
		if err != nil && !errors.Is(err, control.ErrNotRunning) {
			a.warn(err.Error())
		}
		return live
	})
	for _, agent := range agents {
		all, err := later.List(agent)
		if err != nil {
			a.warn(fmt.Sprintf("agent %q: %v", agent.Name, err))
		}
		for _, w := range all {
			s := waiting{Agent: agent.Name, ID: w.ID, At: w.At.In(cmp.Or(agent.Zone, time.Local)), Urgent: w.Urgent, Prompt: foreign.Text(w.Text)}
			if !w.At.After(now) {
				s.Unsent = &status.Unable{Since: s.At, Why: whyUnsent(live(), agent.Name)}
			}
			res.Sends = append(res.Sends, s)
		}
		for i := range agent.Triggers {
			t := &agent.Triggers[i]
			if when := whenOf(t, paused.Of(agent.Name, t.Name)); when != "" {
				res.Others = append(res.Others, timeless{agent.Name, t.Name, when, t.Urgent})
			}
		}
	}
	return res, nil
}

// pausedTriggers are those that are paused, as the run says or, where none answers, the disk.
func pausedTriggers(ctx context.Context, f *config.Fleet, agents []*config.Agent) firing.Paused {
	live, err := askStatus(ctx, f)
	if err == nil {
		return triggersPaused(live.Agents)
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil
	}
	return memory.PausedTriggersOf(dir, agents)
}

// triggersPaused are the triggers that a run says are paused.
func triggersPaused(states []status.AgentState) firing.Paused {
	paused := firing.Paused{}
	for _, a := range states {
		paused[a.Agent] = a.PausedTriggers
	}
	return paused
}

// whenOf says when a trigger fires, whose pause may be nil; "": when its schedule says.
func whenOf(t *config.Trigger, paused *memory.PausedTrigger) string {
	switch {
	case paused != nil && paused.Until.IsZero():
		return "not while it is paused"
	case paused != nil && t.Cron == nil:
		return "not while it is paused, until " + paused.Until.Local().Format(whenForm)
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
	if len(c.Fires)+len(c.Others)+len(c.Sends) == 0 {
		p.printf("no triggers\n")
		return
	}
	c.fires(p)
	c.sends(p)
	c.others(p)
	for _, line := range []string{c.zone, c.idle} {
		if line != "" {
			p.apart(true)
			p.linesf("%s", line)
		}
	}
}

// fires adds the table of what has a schedule.
func (c comingFires) fires(p *page) {
	var rows [][]cell
	for _, f := range c.Fires {
		rows = append(rows, plain(
			f.Agent, f.Trigger, f.At.Format(whenForm), f.At.UTC().Format("2006-01-02 15:04:05Z"),
			withUrgent("in "+status.Span(f.At.Sub(c.now)), f.Urgent),
		))
	}
	p.table([]string{"AGENT", "TRIGGER", "LOCAL TIME", "UTC", "DUE"}, rows)
}

// sends adds the table of the prompts that wait for their time and, once for each agent,
// why those that are due are not sent.
func (c comingFires) sends(p *page) {
	var rows [][]cell
	for _, w := range c.Sends {
		due := "now"
		if w.At.After(c.now) {
			due = "in " + status.Span(w.At.Sub(c.now).Round(time.Second))
		}
		rows = append(rows, plain(w.Agent, w.ID, w.At.Format(whenForm), withUrgent(due, w.Urgent), w.Prompt.String()))
	}
	p.apart(len(rows) > 0)
	p.listing([]string{"AGENT", "ID", "LOCAL TIME", "DUE", "PROMPT"}, rows)
	said := ""
	for _, w := range c.Sends {
		if w.Unsent != nil && w.Agent != said {
			said = w.Agent
			p.linesf("what is due for %s is not sent yet: %s", w.Agent, w.Unsent.Why)
		}
	}
}

// others adds the table of what fires when something happens.
func (c comingFires) others(p *page) {
	var rows [][]cell
	for _, t := range c.Others {
		rows = append(rows, plain(t.Agent, t.Trigger, withUrgent(t.When, t.Urgent)))
	}
	p.apart(len(rows) > 0)
	p.table([]string{"AGENT", "TRIGGER", "WHEN"}, rows)
}

// withUrgent says of a text that what it is about is urgent.
func withUrgent(text string, urgent bool) string {
	if urgent {
		return text + ", urgent"
	}
	return text
}
