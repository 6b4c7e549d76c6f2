package main

import (
	"context"
	"strings"

	"heartbeat/orchestrator"
)

type reloadCmd struct{}

// Help implements kong's HelpProvider.
func (reloadCmd) Help() string {
	return `Has the running scheduler load the fleet's file again, as SIGHUP does, and shows
what that changes. Agents whose definition is the same are not touched; removed
ones end after their turn; changed ones get their new triggers at once and the rest
with their next session. A file with problems changes nothing.

Examples:

    heartbeat reload
    heartbeat reload -o json`
}

// reloaded is what a reload changed.
type reloaded struct{ *orchestrator.Plan }

func (reloadCmd) run(ctx context.Context, a *app) (result, error) {
	if _, err := a.fleet(); err != nil {
		return nil, err // what is known without it is no use here
	}
	_, client, err := a.running()
	if err != nil {
		return nil, err
	}
	plan, err := client.Reload(ctx)
	if err != nil {
		return nil, controlFailure(err)
	}
	return reloaded{plan}, nil
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
}
