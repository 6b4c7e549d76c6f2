package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/operator"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// trigger is one trigger of an agent, as it was declared when it was started.
type trigger struct {
	*config.Trigger
	a   *agent
	cfg *config.Agent
	// key names it for good: the ids of its entries begin with it.
	key string
}

// source names the trigger in entries, for people.
func (t trigger) source() string { return t.cfg.Name + "/" + t.Name }

// skipsOverlap reports whether a fire is dropped while the last one is not done.
func (t trigger) skipsOverlap() bool { return t.Cron != nil && t.Cron.Overlap == config.OverlapSkip }

// enqueue puts one fire of a trigger into its agent's inbox, or says why it
// is not to be there. The label makes it one fire: repeating it after a crash
// between enqueue and record changes nothing.
func (s *Scheduler) enqueue(ctx context.Context, t trigger, p sources.Prompt) (skipped string, err error) {
	defer func() {
		if err == nil {
			s.triggerWorks(t)
		}
	}()
	source := t.source() + "@" + p.Label
	if err := MakeHome(t.cfg); err != nil {
		return "", err
	}
	q, err := operator.Open(t.cfg)
	if err != nil {
		return "", err
	}
	defer q.Close()
	skipped, err = s.skips(ctx, t, q, p)
	if err != nil {
		return "", err
	}
	if skipped != "" {
		s.note(journal.Event{Agent: t.cfg.Name, Kind: journal.Skipped, Trigger: source, Reason: skipped})
		s.log.Info("trigger skipped", "agent", t.cfg.Name, "trigger", t.Name, "why", skipped)
		return skipped, nil
	}
	moves := s.movesOf(t.a)
	letter := inbox.Letter{ID: t.key + "@" + p.Label, Source: source, Prompt: p.Text, Idempotent: true}
	_, err = q.Append(ctx, letter)
	switch {
	case errors.Is(err, inbox.ErrDuplicate):
		return skippedTwice, nil
	case errors.Is(err, inbox.ErrTooLarge): // to offer it again, for ever, would hold up all that follows
		return skippedTooLarge, s.fileTooLarge(ctx, t, q, letter, err)
	}
	if err != nil {
		return "", fmt.Errorf("cannot queue a prompt for agent %q: %w", t.cfg.Name, err)
	}
	s.note(journal.Event{Agent: t.cfg.Name, Kind: journal.Fired, Trigger: source, Due: p.Due})
	s.log.Info("trigger fired", "agent", t.cfg.Name, "trigger", t.Name, "label", p.Label)
	s.queued(t.a, moves)
	return "", nil
}

// recordDelay is how long after a fire its time is kept. A crash meanwhile
// makes the next run offer the same label once more, and the inbox refuses it.
const recordDelay = time.Second

// startTriggers starts what fires: for a run with Once nothing, or, with
// Fire, everything one time. The caller holds s.changing.
func (s *Scheduler) startTriggers(ctx context.Context) {
	if s.opt.Once {
		if s.opt.Fire {
			s.fireAll(ctx)
		}
		return
	}
	s.table, s.files = sources.NewTimetable(), watch.New()
	for _, a := range s.agents {
		s.startAgent(ctx, a, a.cfg)
	}
	s.wg.Go(func() { s.table.Run(ctx) })
}

// watchFiles runs the watch of files once there is something to watch: the
// system's notifications are few.
func (s *Scheduler) watchFiles(ctx context.Context) {
	if s.watching {
		return
	}
	s.watching = true
	s.wg.Go(func() {
		s.files.Run(ctx, func(err error) { s.log.Warn("files are looked at now and then instead", "err", err) })
	})
}

// startAgent starts the triggers of an agent in place of those that it has, and
// returns those that begin anew. The caller holds s.changing.
func (s *Scheduler) startAgent(ctx context.Context, a *agent, cfg *config.Agent) []memory.Anew {
	s.stopTriggers(a)
	s.forgetFailing(a)
	if s.table == nil {
		return nil
	}
	r, err := s.remember(a, cfg)
	if err != nil {
		for i := range cfg.Triggers {
			s.triggerFailed(trigger{&cfg.Triggers[i], a, cfg, ""})(time.Now(), fmt.Errorf("it does not run: %w", err), 0)
		}
		return nil
	}
	for i := range r.all {
		t := trigger{&cfg.Triggers[i], a, cfg, a.keys[cfg.Triggers[i].Name]}
		stop, err := s.startTrigger(ctx, t, r.memory, r.all[i])
		if err != nil {
			s.triggerFailed(t)(time.Now(), fmt.Errorf("it does not run: %w", err), 0)
			continue
		}
		a.stops = append(a.stops, stop)
	}
	return r.anew
}

// stopTriggers stops the triggers of an agent. A fire that is under way goes
// on. The caller holds s.changing.
func (s *Scheduler) stopTriggers(a *agent) {
	for _, stop := range a.stops {
		stop()
	}
	a.stops = nil
}

func (s *Scheduler) startTrigger(ctx context.Context, t trigger, m *memory.Agent, r *memory.Trigger) (stop func(), err error) {
	emit := func(ctx context.Context, p sources.Prompt) error {
		skipped, err := s.enqueue(ctx, t, p)
		if err == nil && skipped == skippedGate && t.Poll != nil {
			return sources.ErrDeclined // it finds the same again
		}
		return err
	}
	kept := func(err error) {
		if err != nil {
			s.log.Warn("cannot remember a fire", "agent", t.cfg.Name, "trigger", t.Name, "err", err)
		}
	}
	soon := func() { s.saveSoon(t.cfg.Name, m) }
	switch {
	case t.Cron != nil:
		tmpl, err := sources.ParseCronTemplate(t.Cron.Prompt)
		if err != nil {
			return nil, err
		}
		was, until := r.Delayed()
		s.table.Set(t.key, sources.Cron{
			Schedule: t.Cron.Schedule, Missed: t.Cron.Missed, Grace: t.Cron.Grace,
			Delay: t.cfg.Delay(t.Trigger), Was: was, Changed: until,
			Last: r.Fired(), Template: tmpl, Emit: emit, Slow: t.Gate != nil,
			Record: func(at time.Time) { r.NoteFired(at); soon() },
			Failed: s.triggerFailed(t),
		})
		return func() { s.table.Remove(t.key) }, nil
	case t.Watch != nil:
		w, err := s.watchTrigger(t, emit)
		if err != nil {
			return nil, err
		}
		s.watchFiles(ctx)
		w.Seen = r.Seen()
		w.Record = func(seen sources.Seen) { kept(r.KeepSeen(seen)) }
		return func() { s.files.Remove(t.key) }, s.files.Set(t.key, w)
	}
	p, err := s.pollTrigger(t, emit)
	if err != nil {
		return nil, err
	}
	p.Kept, p.Last = r.Kept()
	p.Record = func(fired []string) { kept(r.Keep(fired)) }
	p.Succeeded = func(at time.Time) {
		s.triggerWorks(t)
		r.NotePolled(at)
		soon()
	}
	if t.Poll.Overlap == config.OverlapSkip {
		p.Run = s.unlessQueued(t)
	}
	ctx, cancel := context.WithCancel(ctx)
	s.wg.Go(func() { poll.Run(ctx, p) })
	return cancel, nil
}
