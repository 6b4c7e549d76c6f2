package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proving"
)

// apart returns the conversation in which the entry in flight of a member goes on if that
// was set aside once, or "". Its session takes nothing else: the queue has gone on with
// another conversation.
func (c course) apart(p *hook.Policy, failed, unproven *inbox.InFlight) string {
	f := cmp.Or(failed, unproven)
	if f == nil || f.Aside == nil {
		return ""
	}
	p.Context = hook.ContextEntry
	return c.desk.ConversationOf(c.m.key, f)
}

// Asides are the state directory's copies of what is set aside, where no scheduler looks
// after them.
type Asides struct {
	desk *proving.Desk
	key  string
}

// AsidesOf returns those of an agent.
func AsidesOf(f *config.Fleet, stateDir string, a *config.Agent) (Asides, error) {
	d := Asides{desk: proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})}
	if none, err := d.desk.NoAsides(); none || err != nil {
		return d, err
	}
	known, err := memory.Read(stateDir)
	if err == nil {
		d.key = known.Follow(f.Agents, time.Now()).Declared()[a.Name].Key
	}
	return d, err
}

// Dropped forgets those that are dead letters now (proving.Desk.Dropped), and what they say.
func (d Asides) Dropped(ctx context.Context, a *config.Agent) error {
	if err := d.desk.Ended(ctx, a); d.key == "" || err != nil {
		return err
	}
	return d.desk.Dropped(ctx, a, d.key)
}

// Forgets forgets what is kept of an entry that its policy has dropped.
func (d Asides) Forgets(a *config.Agent, f *inbox.InFlight) { d.desk.Forgets(a, f) }

// Ends forgets one that is about to end.
func (d Asides) Ends(delivery string) error {
	if d.key == "" {
		return nil
	}
	return d.desk.NotAside(d.key, delivery)
}
