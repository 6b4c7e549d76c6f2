package main

import (
	"context"

	"heartbeat/orchestrator/status"
)

type restartCmd struct {
	chosen
	Now bool `help:"Do not let turns finish; on-orphan decides about the prompts in flight."`
}

// Help implements kong's HelpProvider.
func (restartCmd) Help() string {
	return `Ends the live sessions of agents after their turns, and returns at once. If prompts
are queued, new sessions start as soon as the old ones have ended; otherwise
the next prompt starts one. With --now turns are ended; the prompts in flight are treated as
after any interruption. An agent without a session is left as it is. Who has joined
a session is told why it ends.

The scheduler itself goes on; "heartbeat reload" loads a changed file.

Examples:

    heartbeat restart triage
    heartbeat restart triage --now
    heartbeat restart --all`
}

// restarted is what agents do after a restart.
type restarted struct {
	Now    bool                `json:"now"`
	Agents []status.AgentState `json:"agents"`
	// Prompts says what becomes of those whose turns are ended, by agent.
	Prompts map[string]string `json:"prompts,omitempty"`
	ours    string
}

func (c restartCmd) run(ctx context.Context, a *app) (result, error) {
	f, client, names, err := c.of(a, "restart")
	if err != nil {
		return nil, err
	}
	var works map[string]string // before: what a session works on goes with it
	if c.Now {
		if live, err := askStatus(ctx, f); err == nil {
			works = fates(f, live.Agents)
		}
	}
	states, err := client.Restart(ctx, c.Now, names...)
	if err != nil {
		return nil, controlFailure(err)
	}
	a.warnOfUnloaded(ctx, f)
	return restarted{c.Now, states, works, a.ours()}, nil
}

func (r restarted) text(p *page) {
	for _, a := range r.Agents {
		switch a.State {
		case status.Running, status.Ending:
			fate := r.Prompts[a.Agent]
			switch {
			case !r.Now && a.State != status.Ending:
				p.saidf("%s: its session ends after its turn; queued prompts start another one", a.Agent)
			case r.Now && fate != "":
				p.saidf("%s: its session ends now; %s", a.Agent, fate)
			default:
				p.saidf("%s: its session ends now; queued prompts start another one", a.Agent)
			}
		case status.Starting:
			p.saidf("%s: its session is only just starting", a.Agent)
		case status.Held, status.BackingOff, status.Parked:
			do, stays := a.Stays(r.ours)
			if !stays {
				do = r.ours + " resume " + a.Agent
			}
			p.saidf("%s: it has no session: it is %s (%s); %s", a.Agent, string(a.Shown()), a.Reason, do)
		default:
			p.saidf("%s: it has no session; the next prompt starts one", a.Agent)
		}
	}
}
