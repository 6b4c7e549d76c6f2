package main

import (
	"context"
	"strings"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/owner"
)

type reloadCmd struct{}

// Help implements kong's HelpProvider.
func (reloadCmd) Help() string {
	return `Makes the running scheduler load the fleet's file again, as SIGHUP does, and shows
what changed. Unchanged agents are not touched; removed agents end after their turn;
changed agents get their new triggers at once and the rest with their next session.
A file with problems changes nothing.

Examples:

    heartbeat reload
    heartbeat reload -o json`
}

// reloaded is what a reload changed.
type reloaded struct{ *orchestrator.Plan }

// run asks the scheduler whatever we think of the file: the scheduler records, and
// counts, that a reload failed.
func (reloadCmd) run(ctx context.Context, a *app) (result, error) {
	f, bad := a.fleet()
	if bad != nil {
		var err error
		if f, _, err = owner.Recall(a.file()); err != nil {
			return nil, bad
		}
	}
	client, err := a.clientOf(f)
	if err != nil {
		return nil, err
	}
	plan, err := client.Reload(ctx)
	switch {
	case err == nil:
		if bad == nil {
			a.warnOf(f)
			a.warnOfUnnamed(f)
			warnOfOldQueues(f, a.warn)
		}
		return reloaded{plan}, nil
	case bad != nil: // which the run says, too
		return nil, bad
	}
	return nil, controlFailure(err)
}

func (r reloaded) text(p *page) {
	if r.Empty() {
		p.printf("nothing changed: %s as before\n", count(len(r.Unchanged), "agent"))
		return
	}
	for _, part := range []struct {
		what, colour string
		names        []string
	}{{"added", p.green, r.Added}, {"removed", p.red, r.Removed}, {"changed", p.yellow, r.Changed}, {"fleet", p.yellow, r.Fleet}} {
		if len(part.names) > 0 {
			p.coloured(part.colour, part.what)
			p.printf(": %s\n", strings.Join(part.names, ", "))
		}
	}
	p.printf("unchanged: %d\n", len(r.Unchanged))
	for _, n := range r.Anew {
		p.coloured(p.yellow, "! "+n.String())
		p.printf("\n")
	}
}
