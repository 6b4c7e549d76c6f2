package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/sources"
)

// Why a fire was not queued.
const (
	skippedOverlap  = "its last fire is still queued or in flight"
	skippedGate     = "its gate said no"
	skippedTwice    = "it was queued before"
	skippedTooLarge = "its prompt is over max-entry" // it is a dead letter
)

// SkipCode is a word for why a fire was skipped, out of a closed list: overlap,
// gate, too-large, or other.
func SkipCode(e journal.Event) string {
	switch e.Reason {
	case skippedOverlap:
		return "overlap"
	case skippedGate:
		return "gate"
	case skippedTooLarge:
		return "too-large"
	}
	return "other"
}

// skips says why a fire is not to be queued, or "".
func (s *Scheduler) skips(ctx context.Context, t trigger, q *inbox.Queue, p sources.Prompt) (string, error) {
	if t.skipsOverlap() {
		switch there, err := s.stillThere(q, t); {
		case err != nil:
			return "", err
		case there:
			return skippedOverlap, nil
		}
	}
	if t.Gate != nil {
		switch open, err := s.gate(ctx, t, p); {
		case err != nil:
			return "", err
		case !open:
			return skippedGate, nil
		}
	}
	return "", nil
}

// filingWait bounds the wait for the hook lock before a dead letter is filed.
const filingWait = 10 * time.Second

// fileTooLarge makes a dead letter of a fire that the inbox refused.
func (s *Scheduler) fileTooLarge(ctx context.Context, t trigger, q *inbox.Queue, l inbox.Letter, why error) error {
	ctx, cancel := context.WithTimeout(ctx, filingWait)
	defer cancel()
	unlock, err := q.Lock(ctx)
	if err == nil {
		err = errors.Join(q.FileTooLarge(l), unlock())
	}
	if err != nil {
		return fmt.Errorf("cannot file a prompt of agent %q that is too large: %w", t.cfg.Name, err)
	}
	s.mu.Lock()
	t.a.deadLettered++
	s.mu.Unlock()
	s.note(journal.Event{Agent: t.cfg.Name, Kind: journal.Skipped, Trigger: l.Source, Reason: skippedTooLarge, Detail: "it is a dead letter: " + why.Error()})
	s.log.Error("a trigger's prompt is a dead letter", "agent", t.cfg.Name, "trigger", t.Name, "source", l.Source, "err", why)
	return nil
}
