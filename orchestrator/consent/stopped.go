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
)

// AnswerStopped is Keeper.Answer for a fleet that no scheduler runs. The next run hands the
// answer over.
func AnswerStopped(ctx context.Context, stateDir, id string, a approval.Answer) (approval.Request, error) {
	r, err := approval.Of(stateDir).Answer(ctx, id, a, time.Now())
	if err != nil {
		return r, err
	}
	return r, noteStopped(ctx, stateDir, time.Now(), r)
}

// noteStopped writes what has become of requests to the journal while no scheduler runs.
func noteStopped(ctx context.Context, stateDir string, now time.Time, all ...approval.Request) error {
	if len(all) == 0 {
		return nil
	}
	var events []journal.Event
	for _, r := range all {
		e := event(r)
		e.At = now
		events = append(events, e)
	}
	return adopt.Note(ctx, stateDir, events...)
}

// SettleStopped withdraws requests of a fleet that no scheduler runs: those that need no
// answer any more, and those for which gone, if it is not nil, returns a reason.
func SettleStopped(ctx context.Context, f *config.Fleet, stateDir string, gone func(approval.Request) string) error {
	known, err := memory.ReadIn(stateDir)
	if err != nil {
		return err
	}
	now := time.Now()
	who, desk := known.Follow(f.Agents, now).Declared(), proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})
	var unread error
	silent := map[string]bool{}
	ended, err := approval.Of(stateDir).Settle(ctx, func(r approval.Request) (why string) {
		a := f.Agent(r.Agent)
		for name, id := range who {
			if r.Key != "" && id.Key == r.Key { // its name may have changed
				a = f.Agent(name)
			}
		}
		if gone != nil {
			why = gone(r)
		}
		switch {
		case why != "":
		case a == nil:
			why = agentRemoved
		case r.Key != "" && who[a.Name].Key != r.Key:
			why = agentReplaced
		case !silent[a.Name]:
			why, err = answering(a.Name, func() (string, error) { return desk.Unneeded(a, r.Key, r) })
			silent[a.Name] = errors.Is(err, errSilent)
			unread = errors.Join(unread, err)
		}
		return why
	}, now)
	if err = errors.Join(err, unread); len(ended) == 0 {
		return err
	}
	return errors.Join(err, noteStopped(ctx, stateDir, now, ended...))
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
