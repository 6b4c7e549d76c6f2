package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/queue"
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

// Kept is what the state directory knows of an agent's queue, where no scheduler looks
// after it: what is set aside, what entries say, and what they have to pass.
type Kept struct {
	desk *proving.Desk
	key  string
}

// KeptOf returns that of an agent.
func KeptOf(f *config.Fleet, stateDir string, a *config.Agent) (Kept, error) {
	d := Kept{desk: proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})}
	if none, err := d.desk.NoAsides(); none || err != nil {
		return d, err
	}
	known, err := memory.ReadIn(stateDir)
	if err == nil {
		d.key = known.Follow(f.Agents, time.Now()).Declared()[a.Name].Key
	}
	return d, err
}

// Ended forgets what was set aside and is a dead letter now (proving.Desk.Dropped), and what
// entries say that have ended. Whoever drops entries calls it afterwards, and whoever deletes
// dead letters before: nothing else tells then that they have ended.
func (d Kept) Ended(ctx context.Context, a *config.Agent) error {
	if err := d.desk.Ended(ctx, a); d.key == "" || err != nil {
		return err
	}
	return d.desk.Dropped(ctx, a, d.key)
}

// Retry is queue.Retry. What is queued again is remembered as what is queued.
func (d Kept) Retry(ctx context.Context, a *config.Agent, ids []string, all bool) (int, error) {
	if err := d.Ended(ctx, a); err != nil && !errors.Is(err, fs.ErrNotExist) { // there is no queue
		return 0, err
	}
	n, again, err := queue.Retry(ctx, a, ids, all)
	d.desk.Sent(a, again...)
	return n, err
}

// MovedOn forgets what entries say that a person's answer has passed.
func (d Kept) MovedOn(ctx context.Context, a *config.Agent) error { return d.desk.MovedOn(ctx, a) }

// Forgets forgets what is kept of an entry that its policy has dropped.
func (d Kept) Forgets(a *config.Agent, f *inbox.InFlight) { d.desk.Forgets(a, f) }

// Ends forgets an entry that was set aside and is about to end.
func (d Kept) Ends(delivery string) error {
	if d.key == "" {
		return nil
	}
	return d.desk.NotAside(d.key, delivery)
}
