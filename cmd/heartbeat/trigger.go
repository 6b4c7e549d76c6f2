package main

import (
	"context"
	"fmt"
	"strconv"

	"heartbeat/orchestrator/firing"
)

type triggerCmd struct {
	Agent   string `arg:"" help:"The agent." complete:"agent"`
	Trigger string `arg:"" optional:"" help:"The trigger; all of the agent's when none is named." complete:"trigger"`
}

// Help implements kong's HelpProvider.
func (triggerCmd) Help() string {
	return `Fires a trigger now, whatever its schedule. A cron queues its prompt, a poll runs
its command once, a watch takes every file that matches; both also queue what has fired
before, "dedupe" or not, and what is new does not fire a second time by itself. With
"overlap: skip" a cron queues nothing while its last prompt is not done; a gate runs as
always. The schedule does not change.

Examples:

    heartbeat trigger triage
    heartbeat trigger builder watch-1`
}

// firedNow is what came of it.
type firedNow struct {
	Agent string         `json:"agent"`
	Fired []firing.Fired `json:"fired"`
}

func (c triggerCmd) run(ctx context.Context, a *app) (result, error) {
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	if _, err := findAgent(f, c.Agent); err != nil {
		return nil, err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	a.step("firing")
	fired, err := client.Trigger(ctx, c.Agent, c.Trigger)
	if err != nil {
		return nil, controlFailure(err)
	}
	res, failed := firedNow{c.Agent, fired}, 0
	for _, t := range fired {
		if t.Problem != "" {
			failed++
		}
	}
	if failed > 0 {
		return res, fmt.Errorf("cannot fire %s of agent %q", count(failed, "trigger"), c.Agent)
	}
	return res, nil
}

func (r firedNow) text(p *page) {
	var rows [][]cell
	for _, t := range r.Fired {
		row := plain(t.Trigger, strconv.Itoa(t.Queued), "")
		switch {
		case t.Problem != "":
			row[2] = cell{t.Problem, p.red}
		case t.Skipped != "":
			row[2].text = t.Skipped
		case t.Prompts == 0:
			row[2].text = "it had nothing to say"
		}
		rows = append(rows, row)
	}
	p.telling([]string{"TRIGGER", "QUEUED", "WHY"}, rows)
}
