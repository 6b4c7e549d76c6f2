package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

type screenCmd struct {
	Agent string `arg:"" help:"The agent." complete:"agent"`
	Watch bool   `short:"w" help:"Show it again whenever it has changed, until the session ends or Ctrl-C."`
}

// Help implements kong's HelpProvider.
func (screenCmd) Help() string {
	return `Prints what the terminal of an agent's live session shows now, as plain text. It
does not disturb the session.

Examples:

    heartbeat screen triage
    heartbeat screen triage --watch
    heartbeat screen triage -o json`
}

// shown is what a terminal shows.
type shown struct{ attach.Picture }

func (c screenCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Watch && a.Output == "json" {
		return nil, usagef("heartbeat screen AGENT -o json", "--watch is for people, not for -o json")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	v, err := a.join(ctx, c.Agent, attach.Guest{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if c.Watch {
		return nil, c.watch(ctx, a, v)
	}
	p, err := v.Look(ctx)
	if errors.Is(err, io.EOF) {
		return nil, &failure{
			status: exitNotRunning, err: fmt.Errorf("cannot show the screen of agent %q: its session has just ended", c.Agent),
			hint: "heartbeat status " + c.Agent,
		}
	}
	return shown{p}, err
}

// watch prints pictures until ctx or the session ends.
func (c screenCmd) watch(ctx context.Context, a *app, v *attach.Viewer) error {
	isTerminal := ptyrun.IsTerminal(a.stdio.out)
	err := v.Watch(ctx, func(p attach.Picture) error {
		return a.out.emit(p, func(out *page) {
			if isTerminal {
				out.document([]byte("\x1b[H\x1b[2J"))
			} else {
				out.printf("-- %s, %s\n", p.Agent, time.Now().Format(time.TimeOnly))
			}
			shown{p}.text(out)
		})
	})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

func (s shown) text(p *page) {
	for _, l := range s.Lines {
		p.printf("%s\n", l)
	}
}
