package notify

import (
	"context"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
)

// put hands notices to the targets that want them.
func (w *Watch) put(all []notice.Notice, now time.Time) {
	for name, b := range w.kept.Boxes {
		if w.fleet.Targets[name] == nil && !w.sending[name] {
			if n := b.Pending(); n > 0 {
				w.opt.Log.Warn("the file no longer names a target: what was on its way there is not sent", "target", name, "notices", n)
			}
			delete(w.kept.Boxes, name)
			w.unsaved = true
		}
	}
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
			if w.kept.Boxes[name] == nil {
				w.kept.Boxes[name] = &outbox.Box{}
			}
			w.kept.Boxes[name].Put(to, n, now)
		}
	}
}

// send begins to send what is due, to each target one message at a time.
func (w *Watch) send(ctx context.Context, now time.Time) {
	for name, b := range w.kept.Boxes {
		to := w.fleet.Targets[name]
		if to == nil || w.sending[name] {
			continue
		}
		before := b.Sending
		m := b.Compose(now)
		if m == nil {
			continue
		}
		if m != before {
			w.unsaved = true
			w.save() // where it cannot be saved it is sent anyway: that may be what it says
		}
		w.sending[name] = true
		from, copied := deliver.From{Fleet: w.fleet.Name, Host: w.opt.Host}, *m
		w.senders.Go(func() {
			a := answer{name, w.deliver(ctx, to, from, &copied)}
			select {
			case w.answer <- a:
			case <-ctx.Done():
			}
		})
	}
}

// answered takes in what came of an attempt.
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
		return // it stands there already
	}
	w.log(Record{At: now, Target: a.target, Outcome: outcome, Key: m.Key, Attempts: m.Attempts, Why: foreign.Text(a.verdict.Why), Notices: m.Notices})
	if outcome != outbox.Sent {
		w.opt.Log.Warn("a notice has not arrived", "target", a.target, "why", a.verdict.Why, "attempts", m.Attempts, "outcome", outcome)
	}
}
