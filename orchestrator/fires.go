package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/operator"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// fireAll fires each trigger one time: cron its prompt; poll one run; watch
// every file that matches now, whatever was seen before.
func (s *Scheduler) fireAll(ctx context.Context) {
	suffix := byHand("fire")
	for _, a := range s.agents {
		if _, err := s.remember(a, a.cfg); err != nil {
			s.log.Warn("cannot tell what has fired before", "agent", a.name, "err", err)
		}
		for i := range a.cfg.Triggers {
			s.mu.Lock()
			t := trigger{&a.cfg.Triggers[i], a, a.cfg, a.keyLocked(a.cfg.Triggers[i].Name)}
			s.firing++
			s.mu.Unlock()
			s.wg.Go(func() {
				defer s.fired()
				if _, err := s.fire(ctx, t, suffix); err != nil && ctx.Err() == nil {
					s.triggerFailed(t)(time.Now(), err, 0)
					s.mu.Lock()
					s.unfired++
					s.mu.Unlock()
				}
			})
		}
	}
}

// fired notes that one trigger of --fire is done.
func (s *Scheduler) fired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firing--
	s.finishOnceLocked()
}

// byHand is the end of the labels of what a person fires: their own, so that
// the next time fires again.
func byHand(how string) string { return "+" + how + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// Fired is what came of firing a trigger by hand.
type Fired struct {
	Trigger string `json:"trigger"`
	// Prompts is what the trigger had to say, Queued how much of it was
	// queued: with overlap: skip nothing is while its last fire is not done.
	Prompts int `json:"prompts"`
	Queued  int `json:"queued"`
	// Skipped says why something was not queued.
	Skipped string `json:"skipped,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Trigger fires triggers of an agent now, the named ones or, without names,
// all of them, and returns when they have fired.
func (s *Scheduler) Trigger(ctx context.Context, name string, triggers ...string) ([]Fired, error) {
	all, err := s.triggersOf(name, triggers)
	if err != nil {
		return nil, err
	}
	suffix := byHand("trigger")
	var fired []Fired
	for _, t := range all {
		f, err := s.fire(ctx, t, suffix)
		if err != nil {
			s.triggerFailed(t)(time.Now(), err, 0)
			f.Problem = err.Error()
		}
		fired = append(fired, f)
	}
	return fired, nil
}

// UnknownTriggerError means that an agent has no trigger of that name.
type UnknownTriggerError struct {
	Agent, Trigger string
	Names          []string // those that it has
}

// Error names the trigger.
func (e *UnknownTriggerError) Error() string {
	if e.Trigger == "" {
		return fmt.Sprintf("cannot fire: agent %q has no triggers", e.Agent)
	}
	return fmt.Sprintf("cannot find trigger %q of agent %q", e.Trigger, e.Agent)
}

// Hint names the triggers that there are.
func (e *UnknownTriggerError) Hint() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("heartbeat send %s TEXT queues a prompt", e.Agent)
	}
	return "its triggers are " + strings.Join(e.Names, ", ")
}

func (s *Scheduler) triggersOf(name string, chosen []string) ([]trigger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, errStopping
	}
	a := s.findLocked(name)
	if a == nil {
		return nil, &UnknownAgentError{Agent: name}
	}
	cfg := a.declaredLocked()
	var all []trigger
	var names []string
	for i := range cfg.Triggers {
		names = append(names, cfg.Triggers[i].Name)
		if len(chosen) == 0 || slices.Contains(chosen, cfg.Triggers[i].Name) {
			all = append(all, trigger{&cfg.Triggers[i], a, cfg, a.keyLocked(cfg.Triggers[i].Name)})
		}
	}
	for _, c := range chosen {
		if !slices.Contains(names, c) {
			return nil, &UnknownTriggerError{Agent: name, Trigger: c, Names: names}
		}
	}
	if len(all) == 0 {
		return nil, &UnknownTriggerError{Agent: name}
	}
	return all, nil
}

// declaredLocked is the definition that the triggers follow: they do not wait
// for the next session.
func (a *agent) declaredLocked() *config.Agent {
	if a.next != nil {
		return a.next
	}
	return a.cfg
}

// fire fires a trigger now, whatever its time.
func (s *Scheduler) fire(ctx context.Context, t trigger, suffix string) (Fired, error) {
	f := Fired{Trigger: t.Name}
	emit := func(ctx context.Context, p sources.Prompt) error {
		p.Label += suffix
		p.Due = time.Time{}
		f.Prompts++
		skipped, err := s.enqueue(ctx, t, p)
		switch {
		case skipped != "":
			f.Skipped = skipped
		case err == nil:
			f.Queued++
		}
		return err
	}
	switch {
	case t.Cron != nil:
		err := fireCron(ctx, t.Cron, emit)
		return f, err
	case t.Watch != nil:
		w, err := s.watchTrigger(t, emit)
		if err != nil {
			return f, err
		}
		_, err = watch.Scan(ctx, w)
		return f, err
	}
	p, err := s.pollTrigger(t, emit)
	if err != nil {
		return f, err
	}
	_, err = poll.Once(ctx, p)
	return f, err
}

func fireCron(ctx context.Context, t *config.CronTrigger, emit sources.Emit) error {
	tmpl, err := sources.ParseCronTemplate(t.Prompt)
	if err != nil {
		return err
	}
	now := time.Now()
	data := sources.CronDataAt(t.Schedule, now)
	text, err := tmpl.Render(data)
	if err != nil {
		return err
	}
	return emit(ctx, sources.Prompt{Label: data.Label, Text: text, At: now})
}

func (s *Scheduler) watchTrigger(t trigger, emit sources.Emit) (watch.Trigger, error) {
	tmpl, err := sources.ParseFileTemplate(t.Watch.Prompt)
	w := watch.Trigger{
		Dir: t.cfg.Dir, Patterns: t.Watch.Patterns, Debounce: t.Watch.Debounce, Removed: t.Watch.Removed,
		Batch: t.Watch.Batch, Template: tmpl, Emit: emit, Failed: s.triggerFailed(t), Slow: t.Gate != nil,
	}
	if t.Watch.IgnoreOwn {
		w.Own = func(at time.Time) bool { return s.inTurn(t.a, at) }
	}
	return w, err
}

// pollTrigger's command gets the caller's environment and the agent's own,
// the agent's name and when it last succeeded; the rest is what its sessions get.
func (s *Scheduler) pollTrigger(t trigger, emit sources.Emit) (poll.Trigger, error) {
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
	return poll.Trigger{
		Key: key, Command: poll.Command{Argv: t.Poll.Command, Dir: t.cfg.Dir, Timeout: t.Poll.Timeout},
		Every: t.Poll.Every, Split: t.Poll.Split, Dedupe: t.Poll.Dedupe, Template: tmpl, Emit: emit,
		Failed: s.triggerFailed(t), Slots: s.polls, Run: s.runPoll(t),
	}, nil
}

// unlessQueued runs a poll's command only when nothing that it printed before
// is still queued or in flight (overlap: skip): a command that names the next
// ticket names the same one until it is done.
func (s *Scheduler) unlessQueued(t trigger) poll.Runner {
	return func(ctx context.Context, c poll.Command) (poll.Output, error) {
		q, err := operator.Open(t.cfg)
		if err != nil {
			return poll.Output{}, err
		}
		defer q.Close()
		there, err := stillThere(q, t.key)
		if there || err != nil {
			return poll.Output{Later: true}, err
		}
		return s.runPoll(t)(ctx, c)
	}
}

// runPoll runs a poll's command with the environment that it has now.
func (s *Scheduler) runPoll(t trigger) poll.Runner {
	return func(ctx context.Context, c poll.Command) (poll.Output, error) {
		env, err := environment(t.cfg)
		if err != nil {
			return poll.Output{}, err
		}
		c.Env = append(env, hook.EnvAgent+"="+t.cfg.Name)
		out, err := poll.Exec(ctx, c)
		if err == nil && out.Later { // nothing to say yet, and nothing is wrong
			s.triggerWorks(t)
		}
		return out, err
	}
}
