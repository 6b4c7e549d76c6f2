package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/operator"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// fireOnce fires a trigger now, whatever its time.
func (s *Scheduler) fireOnce(ctx context.Context, a *agent, t *config.Trigger, emit sources.Emit) error {
	switch {
	case t.Cron != nil:
		return fireCron(ctx, t.Cron, emit)
	case t.Watch != nil:
		w, err := s.watchTrigger(a, t, emit)
		if err != nil {
			return err
		}
		_, err = watch.Scan(ctx, w)
		return err
	}
	p, err := s.pollTrigger(a, t, emit)
	if err != nil {
		return err
	}
	_, err = poll.Once(ctx, p)
	return err
}

func fireCron(ctx context.Context, t *config.CronTrigger, emit sources.Emit) error {
	tmpl, err := sources.ParseCronTemplate(t.Prompt)
	if err != nil {
		return err
	}
	now := time.Now()
	label := t.Schedule.Label(now)
	text, err := tmpl.Render(sources.CronData{At: now, Label: label})
	if err != nil {
		return err
	}
	return emit(ctx, sources.Prompt{Label: label, Text: text, At: now})
}

func (s *Scheduler) watchTrigger(a *agent, t *config.Trigger, emit sources.Emit) (watch.Trigger, error) {
	tmpl, err := sources.ParseFileTemplate(t.Watch.Prompt)
	return watch.Trigger{
		Dir: a.cfg.Dir, Patterns: t.Watch.Patterns, Debounce: t.Watch.Debounce, Template: tmpl, Emit: emit,
		Failed: s.triggerFailed(a, t),
	}, err
}

// pollTrigger's command gets the caller's environment and the agent's own,
// and the agent's name; the same that its sessions get.
func (s *Scheduler) pollTrigger(a *agent, t *config.Trigger, emit sources.Emit) (poll.Trigger, error) {
	var tmpl *sources.Template
	if t.Poll.Prompt != "" {
		var err error
		if tmpl, err = sources.ParsePollTemplate(t.Poll.Prompt); err != nil {
			return poll.Trigger{}, err
		}
	}
	return poll.Trigger{
		Command: poll.Command{Argv: t.Poll.Command, Dir: a.cfg.Dir, Timeout: t.Poll.Timeout},
		Every:   t.Poll.Every, Split: t.Poll.Split, Template: tmpl, Emit: emit,
		Failed: s.triggerFailed(a, t), Slots: s.polls, Run: runPoll(a.cfg),
	}, nil
}

// unlessQueued runs a poll's command only when nothing that it printed before
// is still queued or in flight (overlap: skip): a command that names the next
// ticket names the same one until it is done.
func (s *Scheduler) unlessQueued(a *agent, t *config.Trigger) poll.Runner {
	return func(ctx context.Context, c poll.Command) (poll.Output, error) {
		q, err := operator.Open(a.cfg)
		if err != nil {
			return poll.Output{}, err
		}
		defer q.Close()
		there, err := stillThere(q, a.cfg.Name+"/"+t.Name)
		if there || err != nil {
			return poll.Output{}, err
		}
		return runPoll(a.cfg)(ctx, c)
	}
}

// runPoll runs a poll's command with the environment that it has now.
func runPoll(a *config.Agent) poll.Runner {
	return func(ctx context.Context, c poll.Command) (poll.Output, error) {
		env, err := environment(a)
		if err != nil {
			return poll.Output{}, err
		}
		c.Env = append(env, hook.EnvAgent+"="+a.Name)
		return poll.Exec(ctx, c)
	}
}
