package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/control"
)

type cancelCmd struct {
	Agents []string `arg:"" help:"The agents." complete:"agent"`
	Retry  bool     `help:"Queue the prompt again, behind all others and as if it were new."`
	Entry  string   `placeholder:"ID" help:"Cancel only this prompt: if another one is in flight by now, nothing is done." complete:"entry"`
}

// Help implements kong's HelpProvider.
func (cancelCmd) Help() string {
	return `Ends the turn that an agent is in: its session is told to end, and killed after
end-grace (10s). The prompt in flight becomes a dead letter with the reason
"cancelled", whatever on-orphan says; with --retry it is queued again. The prompts
behind it continue in a new session. A prompt that waits for a failing service to
come back is cancelled, too.

If the prompt is done before its session is ended, it counts as done, and the
command says so. "heartbeat inbox drop" removes a prompt that is still queued.

Examples:

    heartbeat cancel triage
    heartbeat cancel triage --retry
    heartbeat cancel triage --entry ticket-4711`
}

// cancelled is the result of a cancellation.
type cancelled struct {
	Agents []orchestrator.Cancelled `json:"agents"`
	ours   string
}

func (c cancelCmd) run(ctx context.Context, a *app) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	for _, name := range c.Agents {
		if _, err := findAgent(f, name); err != nil {
			return nil, err
		}
	}
	step := "waiting for the end of the turn of " + strings.Join(c.Agents, ", ")
	line := newProgressLine(a)
	line.show(step)
	all, err := client.Cancel(ctx, c.Entry, c.Retry, c.Agents...)
	line.end()
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return nil, &failure{
			status: exitNotRunning, err: errors.New("cannot cancel a turn: heartbeat does not run this fleet, so no turn runs"),
			hint: fmt.Sprintf("%s recover %s --on-orphan deadletter gives up what is in flight; %[1]s inbox drop ID takes out what is queued", a.ours(), c.Agents[0]),
		}
	case err != nil && ctx.Err() != nil:
		return nil, &failure{exitError, a.ours() + " history " + c.Agents[0], errors.New("cannot wait for the end of the turn: interrupted; it still ends")}
	case err != nil:
		return nil, controlFailure(err)
	}
	res := cancelled{all, a.ours()}
	return res, res.failure()
}

// failure names the agents for which nothing was cancelled.
func (c cancelled) failure() error {
	var all []error
	for _, r := range c.Agents {
		if why := c.not(r); why != "" {
			all = append(all, fmt.Errorf("cannot cancel the turn of agent %q: %s", r.Agent, why))
		}
	}
	return errors.Join(all...)
}

// not says why nothing was cancelled; "" if something was.
func (c cancelled) not(r orchestrator.Cancelled) string {
	switch r.Outcome {
	case orchestrator.CancelFinished:
		return "its prompt " + handle(r.ID, r.Delivery) + " had finished; " + c.ours + " replies " + r.Agent + " shows the reply"
	case orchestrator.CancelNothing:
		return r.Why.String()
	case orchestrator.CancelFailed:
		return "it was ended, but not its prompt " + handle(r.ID, r.Delivery) + ": " + r.Why.String()
	case orchestrator.CancelDead, orchestrator.CancelAgain, orchestrator.CancelTurn:
	}
	return ""
}

func (c cancelled) text(p *page) {
	for _, r := range c.Agents {
		switch r.Outcome {
		case orchestrator.CancelDead:
			p.saidf("%s: cancelled; %s dead-letter retry %s queues the prompt again", r.Agent, c.ours, handle(r.ID, r.Delivery))
		case orchestrator.CancelAgain:
			p.saidf("%s: cancelled; the prompt stands at the end of its queue again", r.Agent)
		case orchestrator.CancelTurn:
			p.saidf("%s: its turn was ended; no prompt from the queue was in it", r.Agent)
		case orchestrator.CancelFinished, orchestrator.CancelNothing, orchestrator.CancelFailed:
		}
	}
}
