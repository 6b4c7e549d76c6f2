package consent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/store"
)

// Answer files the answer to a request, and writes that into the journal, for a fleet that no run
// has: the next one hands it over. Its errors are those of approval.Give.
func Answer(c *store.Change, id string, a approval.Answer, now time.Time) (approval.Request, error) {
	r, err := approval.Give(c, id, a, now)
	if err != nil {
		return r, err
	}
	return r, write(c, now, r)
}

// write writes what has become of requests into the journal.
func write(c *store.Change, now time.Time, all ...approval.Request) error {
	var events []journal.Event
	for _, r := range all {
		e := Event(r)
		e.At = now
		events = append(events, e)
	}
	return journal.Write(c, events...)
}

// Settle ends the requests of a fleet that no run has: those that need no answer any more, and
// those for which gone, if it is not nil, returns a reason. The error is a *store.HeldError if
// there are such requests, and a run has the fleet.
func Settle(ctx context.Context, f *config.Fleet, stateDir string, gone func(approval.Request) string) error {
	now := time.Now()
	var waiting, owed []approval.Request
	known, err := store.Ask(ctx, stateDir, func(v *store.View) (known memory.Identities, err error) {
		if waiting, err = approval.Waiting(v); err == nil {
			owed, err = approval.Owed(v)
		}
		if err == nil {
			known, err = memory.Read(v)
		}
		return known, err
	})
	if err != nil || len(waiting)+len(owed) == 0 {
		return err
	}
	var agents []Standing
	for name, who := range known.Follow(f.Agents, now).Declared() {
		agents = append(agents, Standing{Name: name, Key: who.Key, Declared: f.Agent(name)})
	}
	desk := proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})
	var unread error
	silent := map[string]bool{}
	ends := approval.Ends(waiting, owed, func(r approval.Request) (why string) {
		if gone != nil {
			why = gone(r)
		}
		if why != "" {
			return why
		}
		a, why := whose(f, agents, r)
		if a == nil || silent[a.Name] {
			return why
		}
		why, err := answering(a.Name, func() (string, error) { return desk.Unneeded(a, r.Key, r) })
		silent[a.Name] = errors.Is(err, errSilent)
		unread = errors.Join(unread, err)
		return why
	}, now)
	if len(ends) > 0 {
		err = adopt.Act(ctx, stateDir, func(c *store.Change) error {
			ended, err := approval.Settle(c, ends, now)
			if err != nil {
				return err
			}
			return write(c, now, ended...)
		})
	}
	return errors.Join(err, unread)
}

// errSilent means that opening a directory hangs.
var errSilent = errors.New("its directory does not answer")

// answering calls a function that reads an agent's directory, and does not wait for it longer
// than a person would.
func answering(agent string, look func() (string, error)) (string, error) {
	type found struct {
		text string
		err  error
	}
	got := make(chan found, 1)
	go func() {
		text, err := look()
		got <- found{text, err}
	}()
	clock := time.NewTimer(answerPatience)
	defer clock.Stop()
	select {
	case f := <-got:
		return f.text, f.err
	case <-clock.C:
		return "", fmt.Errorf("cannot tell whether the requests of agent %q are needed: %w", agent, errSilent)
	}
}
