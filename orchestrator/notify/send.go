package notify

import (
	"context"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
)

// put puts notices into the boxes of the targets that want them.
func (w *Watch) put(all []notice.Notice, now time.Time) {
	for _, n := range all {
		w.unsaved = true
		var told []string
		if a := w.fleet.Agent(n.Agent); a != nil {
			told = a.Notify
		}
		w.opt.Log.Debug("a notice", "key", n.Key, "what", n.Headline())
		for name, to := range w.fleet.Targets {
			if !outbox.Wants(to, n, told) {
				continue
			}
			w.box(name).Put(to, n, now)
		}
		if n.To != "" && w.fleet.Targets[n.To] == nil {
			w.box(n.To).Put(&config.Target{Name: n.To}, n, now)
		}
	}
	w.unnamed(now)
}

// box returns the box of a target, and makes it if there is none.
func (w *Watch) box(target string) *outbox.Box {
	if w.kept.Boxes[target] == nil {
		w.kept.Boxes[target] = &outbox.Box{}
	}
	return w.kept.Boxes[target]
}

// unnamed handles the boxes of targets that the file no longer names, or names again.
func (w *Watch) unnamed(now time.Time) {
	for name, b := range w.kept.Boxes {
		switch {
		case w.sending[name], w.fleet.Targets[name] != nil && !b.Unnamed:
			continue
		case w.fleet.Targets[name] != nil:
			b.Named()
			w.unsaved = true
			continue
		}
		before, why := b.Unnamed, b.Why
		dropped, late := b.Unname(now)
		if dropped > 0 {
			w.opt.Log.Warn("the file no longer names a target: what was on its way there is not sent", "target", name, "notices", dropped)
		}
		if len(late) > 0 {
			w.opt.Log.Warn("what was for a target alone is given up: the file has not named it for a week", "target", name, "notices", len(late))
			w.log(memo.Record{At: now, Target: name, Outcome: outbox.GivenUp, Key: late[0].Key, Why: foreign.Text(b.Why), Notices: late})
		}
		if b.Pending() == 0 {
			delete(w.kept.Boxes, name)
		} else if !before {
			w.opt.Log.Warn("replies wait for a target that the file does not name", "target", name, "notices", b.Pending())
		}
		w.unsaved = w.unsaved || !before || b.Why != why || b.Pending() == 0
	}
}

// send starts sending what is due, one message at a time per target.
func (w *Watch) send(ctx context.Context, now time.Time) {
	stands := w.stands(ctx)
	for name, b := range w.kept.Boxes {
		to := w.fleet.Targets[name]
		if to == nil || w.sending[name] {
			continue
		}
		before := b.Sending
		w.retract(b, stands, now)
		m := b.Compose(now)
		if m == nil {
			continue
		}
		if m != before {
			w.unsaved = true
			w.save() // if that fails, the message is sent anyway: it may report just that
		}
		w.sending[name] = true
		from, copied := deliver.From{Fleet: w.fleet.Name, Host: w.opt.Host}, asItIs(*m, stands)
		w.senders.Go(func() {
			v, err := attempt(ctx, w.attempts, "to "+name, to.Argv(), func() (outbox.Verdict, error) { return w.deliver(ctx, to, from, &copied), nil })
			if err != nil {
				v.Why = err.Error()
			}
			a := answer{name, v}
			select {
			case w.answer <- a:
			case <-ctx.Done():
			}
		})
	}
}

// answered records the outcome of an attempt.
func (w *Watch) answered(a answer) {
	now := time.Now()
	delete(w.sending, a.target)
	b := w.kept.Boxes[a.target]
	if b == nil || b.Sending == nil {
		return
	}
	m, before := *b.Sending, b.Why
	outcome := b.Answered(a.verdict, now)
	w.unsaved = true
	w.save()
	m.Attempts++
	if outcome == outbox.Failed && a.verdict.Why == before {
		return // it is there already
	}
	w.log(memo.Record{At: now, Target: a.target, Outcome: outcome, Key: m.Key, Attempts: m.Attempts, Why: foreign.Text(a.verdict.Why), Notices: m.Notices})
	if outcome != outbox.Sent {
		w.opt.Log.Warn("a notice has not arrived", "target", a.target, "why", a.verdict.Why, "attempts", m.Attempts, "outcome", outcome)
	}
}

// attempt does what brings a message somewhere: a command only if it has not ended the
// scheduler too often.
func attempt[T any](ctx context.Context, book *attempts.Book, name string, argv []string, do func() (T, error)) (T, error) {
	if len(argv) == 0 {
		return do()
	}
	return attempts.Run(ctx, book, attempts.Work{Kind: attempts.Notify, Name: name, Definition: strings.Join(argv, " ")}, do)
}
