package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

type attachCmd struct {
	Agent      string `arg:"" help:"The agent." complete:"agent"`
	ReadOnly   bool   `help:"Only watch: no key is passed on."`
	DetachKeys string `placeholder:"KEYS" help:"What to press to leave the session, instead of ctrl-backslash: keys like ctrl-p or q, separated by commas."`
}

// Help implements kong's HelpProvider.
func (attachCmd) Help() string {
	return `Joins the terminal of an agent's live session. Several people can join; the window
has the size of the terminal that joined or was resized last. Press ctrl-\
(or --detach-keys) to leave; with --read-only, ctrl-c works too.

While somebody types, and for two minutes after their last key, the session gets no
queued prompts, even if they have left; "heartbeat status" says so. What they submit
comes first: during the current turn or after it, or at once if the session waits.
While somebody is there, the session is not ended for being idle, unless another
agent needs its slot.

Leaving does not disturb the session: it keeps waiting, and the next prompt comes
into the same conversation. Esc and commands like /clear are the exception: if they
leave the client with nothing to do, it cannot be given a prompt without a paid
turn. The session then stays while somebody is there and ends idle-grace (10s) after
they have left; the next prompt starts a new one.

Examples:

    heartbeat attach triage
    heartbeat attach triage --read-only
    heartbeat attach triage --detach-keys ctrl-p,ctrl-q`
}

// visited is how joining a session ended.
type visited struct {
	Agent    string       `json:"agent"`
	Session  string       `json:"session"`
	Detached bool         `json:"detached"`        // the session goes on
	Ended    foreign.Text `json:"ended,omitempty"` // why it ended
}

func (c attachCmd) run(ctx context.Context, a *app) (result, error) {
	if a.Output == "json" {
		return nil, usagef("heartbeat screen AGENT -o json", "attach is for people, not for -o json")
	}
	keys, err := attach.ParseKeys(cmp.Or(c.DetachKeys, `ctrl-\`))
	if err != nil {
		return nil, usagef("heartbeat attach --help", "--detach-keys: %w", err)
	}
	if !c.ReadOnly && (!ptyrun.IsTerminal(a.in) || !ptyrun.IsTerminal(a.stdio.out)) {
		return nil, usagef("heartbeat attach AGENT --read-only, or heartbeat screen AGENT", "attach needs a terminal")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	seat := attach.Seat{In: a.in, Out: a.stdio.out, Leave: keys, ReadOnly: c.ReadOnly}
	v, err := a.join(ctx, c.Agent, seat.Guest())
	if err != nil {
		return nil, err
	}
	defer v.Close()
	visit, err := v.Sit(ctx, seat)
	if err != nil {
		return nil, fmt.Errorf("cannot stay in the session: %w", err)
	}
	return visited{Agent: c.Agent, Session: v.Session.Session, Detached: visit.Left, Ended: visit.Ended}, nil
}

// join joins the live session of an agent.
func (a *app) join(ctx context.Context, agent string, g attach.Guest) (*attach.Viewer, error) {
	fleet, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	if _, err := findAgent(fleet, agent); err != nil {
		return nil, err
	}
	dir, err := runtimeDir(fleet)
	if err != nil {
		return nil, err
	}
	v, err := attach.Join(ctx, filepath.Join(dir, session.SocketName(agent)), g)
	if errors.Is(err, attach.ErrNobody) {
		return nil, &failure{
			status: exitNotRunning, err: fmt.Errorf("cannot join agent %q: %w", agent, err),
			hint: fmt.Sprintf("heartbeat status %s; a session lives while `heartbeat run` has work for it", agent),
		}
	}
	return v, err
}

func (v visited) text(p *page) {
	switch {
	case v.Detached:
		p.printf("detached from %s; its session goes on\n", v.Agent)
	case v.Ended != "":
		p.printf("the session of %s has ended: %s\n", v.Agent, v.Ended)
	default:
		p.printf("the session of %s is gone\n", v.Agent)
	}
}
