// Package provingtest has the part of a scheduler that decides about checked entries, for
// tests that run no scheduler.
package provingtest

import (
	"context"
	"io"
	"log/slog"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/status"
)

// Desk decides about the entry in flight of one agent.
type Desk struct {
	Agent      string
	Dir, Inbox string
	StateDir   string
	Passes     func(delivery string, iteration int) bool // the check
}

// Prove has the entry in flight checked, where its session claims that it is done, and
// applies the verdict. Otherwise it does nothing.
func (d Desk) Prove(ctx context.Context) {
	desk := proving.New(proving.Options{
		StateDir: d.StateDir, Note: func(journal.Event) {}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Files: func(context.Context, string) string { return "" },
		Check: func(_ context.Context, c proof.Check) (proof.Result, error) {
			if d.Passes(c.Delivery, c.Iteration) {
				return proof.Result{Answer: proof.Passed}, nil
			}
			return proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: "not yet", Said: c.Delivery}, nil
		},
	})
	desk.Prove(ctx, proving.Case{Key: d.Agent, Agent: d.agent, Tell: func(status.Proof) {}})
}

func (d Desk) agent() *config.Agent {
	return &config.Agent{Name: d.Agent, Dir: d.Dir, Inbox: d.Inbox, Until: config.NewUntil("true")}
}
