package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
	"heartbeat/sources/watch"
)

func (s *Scheduler) watchTrigger(a *agent, t *config.Trigger, emit sources.Emit) (watch.Trigger, error) {
	tmpl, err := sources.ParseFileTemplate(t.Watch.Prompt)
	return watch.Trigger{
		Dir: a.cfg.Dir, Patterns: t.Watch.Patterns, Debounce: t.Watch.Debounce, Template: tmpl, Emit: emit,
		Failed: s.triggerFailed(a, t),
	}, err
}

func (s *Scheduler) fireOnce(ctx context.Context, a *agent, t *config.Trigger, emit sources.Emit) error {
	switch {
	case t.Cron != nil:
		return s.fireCron(ctx, t, emit)
	case t.Watch != nil:
		w, err := s.watchTrigger(a, t, emit)
		if err != nil {
			return err
		}
		_, err = watch.Scan(ctx, w)
		return err
	}
	return nil
}

// fireCron fires a schedule now.
func (s *Scheduler) fireCron(ctx context.Context, t *config.Trigger, emit sources.Emit) error {
	tmpl, err := sources.ParseCronTemplate(t.Cron.Prompt)
	if err != nil {
		return err
	}
	now := time.Now()
	label := t.Cron.Schedule.Label(now)
	text, err := tmpl.Render(sources.CronData{At: now, Label: label})
	if err != nil {
		return err
	}
	return emit(ctx, sources.Prompt{Label: label, Text: text, At: now})
}

func (s *Scheduler) startPoll(ctx context.Context, a *agent, t *config.Trigger, emit sources.Emit) {}
