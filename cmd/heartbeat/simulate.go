package main

import (
	"context"

	"heartbeat/internal/simulate"
)

type simulateCmd struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Arguments as claude takes them."`
}

// Help implements kong's HelpProvider.
func (simulateCmd) Help() string {
	return `Acts as the Claude Code client does towards hooks and terminals, with scripted
replies. It parses its own arguments: "heartbeat simulate --help" lists them.

Examples:

    heartbeat simulate -p "Say hello"
    command: [heartbeat, simulate]          # in heartbeat.yaml`
}

func (c simulateCmd) run(_ context.Context, a *app) (result, error) {
	if code := simulate.Main(c.Args, a.in, a.stdio.out, a.err); code != 0 {
		return nil, childStatus(code)
	}
	return nil, nil
}
