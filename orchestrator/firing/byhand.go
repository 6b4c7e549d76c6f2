package firing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// FireAll fires each trigger that cfg declares once, now: cron its prompt; poll one
// run; watch every file that matches now, whatever was seen before; a webhook nothing.
// It returns how many could not be fired.
func (t *Triggers) FireAll(ctx context.Context, cfg *config.Agent) (unfired int) {
	t.f.changing.Lock()
	t.remember(cfg)
	t.f.changing.Unlock()
	var failed atomic.Int64
	var all sync.WaitGroup
	suffix := byHand("fire")
	for i := range cfg.Triggers {
		one := t.declared(cfg, i)
		if one.Webhook != nil || t.isPaused(one.Name) {
			continue // the prompt of a webhook is made of a request
		}
		all.Go(func() {
			if _, err := one.fire(ctx, suffix); err != nil && ctx.Err() == nil {
				one.failedByHand(err)
				failed.Add(1)
			}
		})
	}
	all.Wait()
	return int(failed.Load())
}

// byHand is trigger.byHand of fires that a command asks for.
func byHand(how string) string { return "+" + how + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// Fired is the result of firing a trigger by hand.
type Fired struct {
	Trigger string `json:"trigger"`
	// Prompts is how many prompts the trigger had, Queued how many of them were
	// queued: with overlap: skip none is while its last fire is not done.
	Prompts int `json:"prompts"`
	Queued  int `json:"queued"`
	// Skipped says why something was not queued.
	Skipped string `json:"skipped,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Fire fires triggers that cfg declares now, those that are named or, without
// names, all of them but webhooks, and returns when they have fired.
func (t *Triggers) Fire(ctx context.Context, cfg *config.Agent, names ...string) ([]Fired, error) {
	all, err := t.chosen(cfg, names)
	if err != nil {
		return nil, err
	}
	suffix := byHand("trigger")
	var fired []Fired
	for _, one := range all {
		if len(names) == 0 && t.isPaused(one.Name) {
			fired = append(fired, Fired{Trigger: one.Name, Skipped: skippedPaused})
			continue
		}
		f, err := one.fire(ctx, suffix)
		if err != nil {
			f.Problem = err.Error()
		}
		if err != nil && !errors.Is(err, errNoRequest) {
			one.failedByHand(err)
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

// Hint names the triggers that exist.
func (e *UnknownTriggerError) Hint() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("heartbeat send %s TEXT queues a prompt", e.Agent)
	}
	return "its triggers are " + strings.Join(e.Names, ", ")
}

func (t *Triggers) chosen(cfg *config.Agent, chosen []string) ([]trigger, error) {
	var all []trigger
	var names []string
	for i := range cfg.Triggers {
		names = append(names, cfg.Triggers[i].Name)
		if len(chosen) == 0 && cfg.Triggers[i].Webhook == nil || slices.Contains(chosen, cfg.Triggers[i].Name) {
			all = append(all, t.declared(cfg, i))
		}
	}
	for _, c := range chosen {
		if !slices.Contains(names, c) {
			return nil, &UnknownTriggerError{Agent: t.name, Trigger: c, Names: names}
		}
	}
	if len(all) == 0 && len(names) > 0 {
		return nil, errNoRequest
	}
	if len(all) == 0 {
		return nil, &UnknownTriggerError{Agent: t.name}
	}
	return all, nil
}

// errNoRequest means that a webhook was fired by hand: its prompt is made of a
// request.
var errNoRequest = errors.New("cannot fire a webhook without a request: send one to its path (heartbeat help webhook shows how)")

// fire fires a trigger now, whatever its time.
func (t trigger) fire(ctx context.Context, suffix string) (Fired, error) {
	f := Fired{Trigger: t.Name}
	t.pace, t.byHand = nil, suffix // a person knows how often
	emit := func(ctx context.Context, p sources.Prompt) error {
		if t.Cron != nil { // its own label is that of a time; others name what is found, so that it is not found again
			p.Label += suffix
		}
		p.Due = time.Time{}
		f.Prompts++
		skipped, err := t.offer(ctx, p)
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
		w, err := t.watched(emit)
		if err != nil {
			return f, err
		}
		_, err = watch.Scan(ctx, w)
		return f, err
	case t.Webhook != nil:
		return f, errNoRequest
	}
	p, err := t.polled(emit)
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
