package firing

import (
	"context"
	"errors"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
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
	skippedFull     = "the agent's queue is full (max-queue)"
	skippedRate     = "it has fired as often as its rate allows"
	skippedPaused   = "it is paused"
	skippedMissed   = "it was due while nothing ran, and is not made up for (missed, grace)"
)

// fullError means that a fire has no room now.
type fullError struct {
	why  string    // skippedFull or skippedRate
	free time.Time // when it may have room, or zero
}

// Error says why.
func (e *fullError) Error() string { return e.why }

// downError is for a request whose agent cannot work, and takes none meanwhile.
type downError struct{ why string }

// Error says why.
func (e *downError) Error() string { return e.why }

// down says why a request is refused, whose agent cannot work or whose trigger is paused; ""
// if it is not.
func (t trigger) down() string {
	switch {
	case t.Webhook == nil, t.byHand != "":
		return ""
	case t.of.isPaused(t.Name):
		return "the trigger is paused; ask again later"
	case t.cfg.WhileDown != config.DownRefuses:
		return ""
	}
	why := t.of.agent.Down()
	if why != "" && t.cfg.DownText != "" {
		why += "; " + t.cfg.DownText
	}
	return why
}

// SkipCode is a word for why a fire was skipped, from a closed list: overlap, gate,
// too-large, queue-full, rate, missed, or other.
func SkipCode(e journal.Event) string {
	switch e.Reason {
	case skippedOverlap:
		return "overlap"
	case skippedGate:
		return "gate"
	case skippedTooLarge:
		return "too-large"
	case skippedFull:
		return "queue-full"
	case skippedRate:
		return "rate"
	case skippedMissed:
		return "missed"
	}
	return "other"
}

// comesAgain reports whether a fire that has no room is found again, until it has.
func (t trigger) comesAgain() bool { return t.byHand == "" && (t.Watch != nil || t.Poll != nil) }

// offer puts one fire into the agent's inbox, or says why it is not. The label
// makes it one fire: repeating it after a crash between that and its record changes
// nothing.
func (t trigger) offer(ctx context.Context, p sources.Prompt) (skipped string, err error) {
	begin, skipped, detail, err := t.queue(ctx, &p)
	source := t.source() + "@" + p.Label
	if full, ok := errors.AsType[*fullError](err); ok {
		if !t.comesAgain() {
			t.of.refuse(t.Name, full.why, 1)
		}
		if t.Cron != nil || t.byHand != "" {
			skipped, err = full.why, nil // it is not found again
		}
	}
	if err != nil {
		return "", err
	}
	if t.Watch == nil { // of the files, each may be the one that does not work
		t.works()
	}
	t.of.waits(t.Name, false)
	f := t.of.f
	switch skipped {
	case "":
		defer begin()
		f.opt.Log.Info("trigger fired", "agent", t.cfg.Name, "trigger", t.Name, "label", p.Label)
		lacks := ""
		if len(p.Lacking) > 0 {
			lacks = "the prompt was made without " + strings.Join(p.Lacking, ", ") + ": there is no such thing"
			f.opt.Log.Warn(lacks, "agent", t.cfg.Name, "trigger", t.Name)
		}
		f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.Fired, Trigger: source, Due: p.Due, Detail: foreign.Text(lacks)})
	case skippedTwice:
	default:
		f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.Skipped, Trigger: source, Reason: foreign.Text(skipped), Detail: foreign.Text(detail)})
		f.opt.Log.Info("trigger skipped", "agent", t.cfg.Name, "trigger", t.Name, "why", skipped)
	}
	return skipped, nil
}

// queue is offer but for what is told of it. What is fired by hand and was queued before gets
// a label of its own.
func (t trigger) queue(ctx context.Context, p *sources.Prompt) (begin func(), skipped, detail string, err error) {
	if skipped, err = t.skips(ctx, *p); skipped != "" || err != nil {
		return nil, skipped, "", err
	}
	letter := t.letter(*p)
	down, undo, free := t.down(), func() {}, time.Time{}
	if down == "" {
		undo, free = t.pace.take(time.Now())
	}
	if !free.IsZero() || down != "" {
		letter.Most = -1 // only what is there already is told
		undo = func() {}
	}
	begin, err = t.of.agent.Append(ctx, t.cfg, t.Trigger, letter)
	if errors.Is(err, inbox.ErrDuplicate) && t.byHand != "" {
		p.Label += t.byHand
		begin, err = t.of.agent.Append(ctx, t.cfg, t.Trigger, t.letter(*p))
	}
	if err != nil {
		undo()
	}
	switch {
	case errors.Is(err, inbox.ErrFull) && down != "":
		return nil, "", "", &downError{down}
	case errors.Is(err, inbox.ErrFull) && !free.IsZero():
		return nil, "", "", &fullError{skippedRate, free}
	case errors.Is(err, inbox.ErrFull):
		return nil, "", "", &fullError{why: skippedFull}
	case errors.Is(err, inbox.ErrDuplicate):
		return nil, skippedTwice, "", nil
	case errors.Is(err, inbox.ErrTooLarge): // offering it again forever would block all that follows
		return nil, skippedTooLarge, "it is a dead letter: " + err.Error(), nil
	}
	return begin, "", "", err
}

// letter is the entry of a prompt.
func (t trigger) letter(p sources.Prompt) inbox.Letter {
	return inbox.Letter{ID: t.key + "@" + p.Label, Source: t.source() + "@" + p.Label, Prompt: p.Text, Idempotent: true, Urgent: t.Urgent}
}

// waits takes down whether fires of a trigger wait for room, and reports whether that
// is new.
func (t *Triggers) waits(name string, waits bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[string]bool{}
	}
	changed = t.waiting[name] != waits
	t.waiting[name] = waits
	return changed
}

// skips says why a fire is not to be queued, or "".
func (t trigger) skips(ctx context.Context, p sources.Prompt) (string, error) {
	if t.Cron != nil && t.Cron.Overlap == config.OverlapSkip {
		switch there, err := t.of.agent.Holds(t.cfg, t.key+"@"); {
		case err != nil:
			return "", err
		case there:
			return skippedOverlap, nil
		}
	}
	if t.Gate != nil {
		switch open, err := t.gate(ctx, p); {
		case err != nil:
			return "", err
		case !open:
			return skippedGate, nil
		}
	}
	return "", nil
}
