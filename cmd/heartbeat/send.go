package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/workspace"
)

type sendCmd struct {
	Agent string `arg:"" help:"The agent." complete:"agent"`
	Text  string `arg:"" optional:"" help:"The prompt; \"-\", or none with a pipe, reads it from stdin."`
	// ID is nil when none is given.
	ID *string `name:"id" placeholder:"KEY" help:"Accept this prompt once: another send with the same key does nothing."`

	Wait    bool          `help:"Wait for the reply and print it. A scheduler must be running."`
	Timeout time.Duration `placeholder:"DURATION" default:"0" help:"With --wait: give up waiting after this time, with status 124; the prompt stays queued. 0: never."`
}

// Help implements kong's HelpProvider.
func (sendCmd) Help() string {
	return `When it exits with 0, the prompt is on disk (file and folder synced).

Examples:

    heartbeat send triage "Look at the new mails."
    heartbeat send builder - < task.md
    heartbeat send triage --id ticket-4711 "Answer ticket 4711."
    heartbeat send --wait --timeout 10m triage "How many mails are new?"
    heartbeat send triage -- "- a prompt that begins with a dash"`
}

// sent is an accepted prompt.
type sent struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	// Running is true when a scheduler runs the agent.
	Running bool `json:"running"`
	// Held is why the scheduler starts nothing for the agent until somebody
	// resumes it, or "".
	Held foreign.Text `json:"held,omitempty"`
	// Duplicate is true when the id was accepted before; nothing was queued.
	Duplicate bool `json:"duplicate"`
	// Delivery is the entry's record in the outbox, with --wait.
	Delivery *inbox.Delivery `json:"delivery,omitempty"`
}

func (c sendCmd) run(ctx context.Context, a *app) (result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	agent, err := a.agent(c.Agent)
	if err != nil {
		return nil, err
	}
	if err := owner.CheckName(a.known); err != nil {
		return nil, err // nobody would work on it
	}
	prompt, err := c.prompt(a, agent.MaxEntry)
	if err != nil {
		return nil, err
	}
	a.step("appending to " + agent.Inbox)
	if err := c.makeHome(agent); err != nil {
		return nil, err
	}
	letter := inbox.Letter{Source: "send", Prompt: prompt}
	if c.ID != nil {
		letter.ID, letter.Idempotent = *c.ID, true
	}
	id, err := queue.Append(ctx, agent, letter)
	accepted := sent{Agent: agent.Name, ID: id, Inbox: agent.Inbox, Running: flock.Held(agent.Dir)}
	switch {
	case errors.Is(err, inbox.ErrDuplicate):
		accepted.ID, accepted.Duplicate = letter.ID, true
	case err != nil:
		return nil, err
	}
	if accepted.Running {
		accepted.Held = a.heldFor(agent)
	}
	if !c.Wait {
		return accepted, nil
	}
	a.step("waiting for the reply")
	if !accepted.Running {
		a.log.Warn("no heartbeat run serves this agent now; waiting for one", "agent", agent.Name)
	}
	if accepted.Held != "" {
		a.log.Warn("the agent is held; waiting until it is resumed", "agent", agent.Name, "why", accepted.Held)
	}
	accepted.Delivery, err = c.await(ctx, agent, accepted.ID)
	return accepted, err
}

// heldFor is why a running scheduler starts nothing for an agent, by what it
// published last; "" where it does, or where that is not known.
func (a *app) heldFor(agent *config.Agent) foreign.Text {
	dir, err := owner.StateDir(a.known)
	if err != nil {
		return ""
	}
	st, err := status.Published(dir, agent.Name)
	if err != nil || st.State != status.Held {
		return ""
	}
	return st.Reason
}

// check refuses flags that would do nothing.
func (c sendCmd) check() error {
	switch {
	case c.Timeout != 0 && !c.Wait:
		return usagef("heartbeat send --wait --timeout DURATION AGENT TEXT", "--timeout says how long to wait, without --wait")
	case c.ID != nil && *c.ID == "":
		return usagef("heartbeat send --id KEY AGENT TEXT", "--id is empty: the prompt would be accepted each time")
	}
	return nil
}

// makeHome makes what is missing in the agent's directory, but not the
// directory itself: a wrong "dir" would become an empty workspace that nobody
// looks into.
func (sendCmd) makeHome(agent *config.Agent) error {
	if _, err := os.Stat(agent.Dir); err != nil {
		return &failure{
			status: exitError, hint: "heartbeat apply " + agent.Name + " makes it; or correct dir in the configuration",
			err: fmt.Errorf("cannot queue the prompt: cannot find the directory of agent %q: %w", agent.Name, err),
		}
	}
	return workspace.MakeHome(agent)
}

// errNoReply is the cause with which --timeout ends the wait.
var errNoReply = errors.New("no reply in time")

func (c sendCmd) await(ctx context.Context, agent *config.Agent, id string) (*inbox.Delivery, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errNoReply)
		defer cancel()
	}
	d, err := queue.Await(ctx, agent, id)
	if errors.Is(err, errNoReply) {
		return nil, &failure{
			status: exitTimeout, hint: "the prompt stays queued: heartbeat status " + agent.Name,
			err: fmt.Errorf("cannot get a reply from agent %q within %s", agent.Name, c.Timeout),
		}
	}
	return d, err
}

// prompt is the text to send. It never waits for a person to type one.
func (c sendCmd) prompt(a *app, limit int64) (string, error) {
	text := c.Text
	if text == "-" || text == "" {
		if text == "" && term.IsTerminal(int(a.in.Fd())) {
			return "", usagef(`heartbeat send AGENT "TEXT", or heartbeat send AGENT - < FILE`, "there is no prompt")
		}
		data, err := io.ReadAll(io.LimitReader(a.in, limit+1))
		if err != nil {
			return "", fmt.Errorf("cannot read the prompt from stdin: %w", err)
		}
		text = strings.TrimRight(string(data), "\r\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", usagef(`heartbeat send AGENT "TEXT", or heartbeat send AGENT - < FILE`, "the prompt is blank")
	case int64(len(text)) > limit:
		return "", &failure{
			status: exitError, hint: "put the text into a file and send its name, or raise max-entry",
			err: fmt.Errorf("cannot queue the prompt: %w: over max-entry (%d bytes)", inbox.ErrTooLarge, limit),
		}
	case !utf8.ValidString(text):
		return "", errors.New("cannot queue the prompt: it is not valid UTF-8")
	}
	return text, nil
}

func (s sent) text(p *page) {
	if s.Delivery != nil {
		p.whole("", s.Delivery.Reply)
		return
	}
	if s.Duplicate {
		p.printf("already accepted: %s\n", s.ID)
		return
	}
	p.printf("queued for %s: %s\n", s.Agent, s.ID)
	switch {
	case !s.Running:
		p.printf("It waits until somebody runs `heartbeat run`.\n")
	case s.Held != "":
		p.printf("It waits: the agent is held (%s). `heartbeat resume %s` lets it go on.\n", s.Held, s.Agent)
	}
}
