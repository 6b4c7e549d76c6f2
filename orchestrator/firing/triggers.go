package firing

import (
	"context"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/memory"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
	"heartbeat/sources/webhook"
)

// start makes a trigger fire by itself.
func (t trigger) start(ctx context.Context, m *memory.Agent, r *memory.Trigger) (stop func(), err error) {
	emit := func(ctx context.Context, p sources.Prompt) error {
		skipped, err := t.offer(ctx, p)
		if err == nil && skipped == skippedGate && t.Poll != nil {
			return sources.ErrDeclined // it will find the same again
		}
		return err
	}
	switch {
	case t.Cron != nil:
		return t.startCron(m, r, emit)
	case t.Watch != nil:
		return t.startWatch(ctx, r, emit)
	case t.Webhook != nil:
		return t.answer(m, r)
	}
	return t.startPoll(ctx, m, r, emit)
}

// startCron adds a trigger to the timetable.
func (t trigger) startCron(m *memory.Agent, r *memory.Trigger, emit sources.Emit) (stop func(), err error) {
	f := t.of.f
	tmpl, err := sources.ParseCronTemplate(t.Cron.Prompt)
	if err != nil {
		return nil, err
	}
	was, until := r.Delayed()
	f.table.Set(t.key, sources.Cron{
		Schedule: t.Cron.Schedule, Missed: t.Cron.Missed, Grace: t.Cron.Grace,
		Delay: t.cfg.Delay(t.Trigger), Was: was, Changed: until,
		Last: r.Fired(), Template: tmpl, Emit: emit, Slow: t.Gate != nil,
		Record: func(at time.Time) { r.NoteFired(at); m.SaveSoon() },
		Failed: t.fails, PassedOver: t.passedOver,
	})
	return func() { f.table.Remove(t.key) }, nil
}

// startWatch adds a trigger to the files that are watched.
func (t trigger) startWatch(ctx context.Context, r *memory.Trigger, emit sources.Emit) (stop func(), err error) {
	f := t.of.f
	w, err := t.watched(emit)
	if err != nil {
		return nil, err
	}
	f.watchFiles(ctx)
	w.Seen = r.Seen()
	w.Record = func(seen sources.Seen) { t.warnForgets(r.KeepSeen(seen)) }
	return func() { f.files.Remove(t.key) }, f.files.Set(t.key, w)
}

// startPoll runs a trigger's command from time to time.
func (t trigger) startPoll(ctx context.Context, m *memory.Agent, r *memory.Trigger, emit sources.Emit) (stop func(), err error) {
	f := t.of.f
	t.deferred = &deferral{}
	p, err := t.polled(emit)
	if err != nil {
		return nil, err
	}
	p.Kept, p.Last = r.Kept()
	p.Record = func(fired []string) { t.warnForgets(r.Keep(fired)) }
	p.Succeeded = func(at time.Time) {
		t.works()
		r.NotePolled(at)
		m.SaveSoon()
	}
	if t.Poll.Overlap == config.OverlapSkip {
		p.Run = t.unlessQueued
	}
	ctx, cancel := context.WithCancel(ctx)
	f.opt.Go(func() { poll.Run(ctx, p) })
	return cancel, nil
}

// warnForgets says that a fire may come again after a restart.
func (t trigger) warnForgets(err error) {
	if err != nil {
		t.of.f.opt.Log.Warn("cannot remember a fire", "agent", t.cfg.Name, "trigger", t.Name, "err", err)
	}
}

// watched returns the trigger for the watch of files.
func (t trigger) watched(emit sources.Emit) (watch.Trigger, error) {
	tmpl, err := sources.ParseFileTemplate(t.Watch.Prompt)
	w := watch.Trigger{
		Dir: t.cfg.Dir, Patterns: t.Watch.Patterns, Debounce: t.Watch.Debounce, Removed: t.Watch.Removed,
		Batch: t.Watch.Batch, Template: tmpl, Emit: emit, Failed: t.fails, Succeeded: t.works, Slow: t.Gate != nil,
	}
	if t.Watch.IgnoreOwn {
		w.Own = t.of.agent.InTurn
	}
	return w, err
}

// polled returns the trigger for poll. Its command gets the agent's environment,
// like its sessions, with the agent's name and the time of the last success.
func (t trigger) polled(emit sources.Emit) (poll.Trigger, error) {
	var tmpl *sources.Template
	if t.Poll.Prompt != "" {
		var err error
		if tmpl, err = sources.ParsePollTemplate(t.Poll.Prompt, t.Poll.Split); err != nil {
			return poll.Trigger{}, err
		}
	}
	var key *sources.Template
	if t.Poll.Key != "" {
		var err error
		if key, err = sources.ParsePollTemplate(t.Poll.Key, t.Poll.Split); err != nil {
			return poll.Trigger{}, err
		}
	}
	var label func(string) string
	if t.Poll.BacksUp != "" {
		label = webhook.Label
	}
	return poll.Trigger{
		Key: key, Label: label, Command: poll.Command{Argv: t.Poll.Argv(), Dir: t.cfg.Dir, Timeout: t.Poll.Timeout},
		Every: t.Poll.Every, Split: t.Poll.Split, Dedupe: t.Poll.Dedupe, Template: tmpl, Emit: emit,
		Failed: t.fails, Slots: t.of.f.polls, Run: t.run,
	}, nil
}

// unlessQueued runs a poll's command only if nothing that it printed before is
// still queued or in flight (overlap: skip): a command that prints the next ticket
// prints the same one until that is done.
func (t trigger) unlessQueued(ctx context.Context, c poll.Command) (poll.Output, error) {
	there, err := t.of.agent.Holds(t.cfg, t.key+"@")
	if there || err != nil {
		return poll.Output{Later: true}, err
	}
	return t.run(ctx, c)
}

// run runs a poll's command with its present environment.
func (t trigger) run(ctx context.Context, c poll.Command) (poll.Output, error) {
	env, err := t.of.f.opt.Environment(t.cfg)
	if err != nil {
		return poll.Output{}, err
	}
	c.Env = append(env, hook.EnvAgent+"="+t.cfg.Name)
	out, err := t.attempt(ctx, attempts.Poll, c)
	if err == nil {
		t.defers(out.Later)
	}
	return out, err
}

// deferral is how long a poll's command has said nothing but "ask again later", and how often.
type deferral struct {
	since time.Time
	times int
}

// deferredFor is how long a command may say so before that is told as a failure.
const deferredFor = 24 * time.Hour

// defers takes in whether a poll's command says "ask again later": it has no output yet, and
// nothing is wrong, unless that goes on for days.
func (t trigger) defers(later bool) {
	d, now := t.deferred, time.Now()
	switch {
	case d == nil || !later:
	case d.times == 0:
		*d = deferral{now, 1}
	default:
		d.times++
	}
	switch {
	case !later && d != nil:
		*d = deferral{}
	case !later:
	case d == nil || now.Sub(d.since) < deferredFor:
		t.works()
	default:
		t.count(now, "its command has exited with 75, ask again later, each time", func(f *Failing) {
			f.Since, f.Times, f.Retry = d.since, d.times, now.Add(t.Poll.Every)
		})
	}
}

// attempt runs a command of the trigger, unless that has ended the scheduler too often.
func (t trigger) attempt(ctx context.Context, kind attempts.Kind, c poll.Command) (poll.Output, error) {
	w := attempts.Work{Kind: kind, Agent: t.cfg.Name, Name: t.Name, Definition: c.Dir + " " + strings.Join(c.Argv, " "), ByHand: t.byHand != ""}
	return attempts.Run(ctx, t.of.f.attempts, w, func() (poll.Output, error) { return poll.Exec(ctx, c) })
}
