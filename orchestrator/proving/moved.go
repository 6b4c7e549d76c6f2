package proving

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"heartbeat/config"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// Moved has what is remembered of an agent's entries follow it from its former directory.
// owns returns the agent's directory that a path is in. What stands in the queue of the
// former directory, or has ended in it, stays. So the agent still has to prove what came
// along with its queue, it is told what is missing, and whoever has the former directory
// now is not told of entries that were never its own. Call it before anything is looked at
// with the new definition. When it is interrupted, call it again.
func (d *Desk) Moved(ctx context.Context, from string, owns func(path string) string, a *config.Agent) error {
	inboxes, err := ledger.Inboxes(d.opt.StateDir)
	for _, path := range inboxes {
		if path != a.Inbox && owns(path) == from {
			was := &config.Agent{Name: a.Name, Dir: from, Home: filepath.Join(from, filepath.Base(a.Home)), Inbox: path, MaxEntry: a.MaxEntry}
			err = errors.Join(err, d.takeAlong(ctx, was, a))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot move the records of agent %q from %q: %w", a.Name, from, err)
	}
	return nil
}

// takeAlong does that for one inbox.
func (d *Desk) takeAlong(ctx context.Context, was, a *config.Agent) error {
	texts, err := ledger.TextsOf(d.opt.StateDir, was.Inbox)
	if err != nil {
		return err
	}
	known, err := texts.Load()
	if err != nil {
		return err
	}
	demands, err := ledger.Demands(d.opt.StateDir, was.Inbox)
	if err != nil {
		return err
	}
	says := make(map[string]string, len(known)+len(demands))
	for _, t := range known {
		says[t.ID] = t.Text
	}
	for i := range demands {
		says[demands[i].ID] = demands[i].Text
	}
	fates, err := queue.Fates(ctx, was, says)
	if err != nil {
		return err
	}
	for i := range demands {
		if toCome(was, &demands[i]) {
			delete(fates, demands[i].ID)
		}
	}
	maps.DeleteFunc(fates, func(_ string, is queue.Fate) bool { return is.Stands || is.Dead || len(is.Done) > 0 })
	return ledger.Move(d.opt.StateDir, was.Inbox, a.Inbox, slices.Sorted(maps.Keys(fates))...)
}
