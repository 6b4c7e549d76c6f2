package firing

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
)

// A paused trigger does not run: no schedule, no look at files, no command. Its webhook
// answers that it is to be asked again. What a person fires by hand, by name, is fired.

// Find returns the position of a trigger among those that an agent declares, by its name.
func Find(cfg *config.Agent, name string) (int, error) {
	var names []string
	for i := range cfg.Triggers {
		if cfg.Triggers[i].Name == name {
			return i, nil
		}
		names = append(names, cfg.Triggers[i].Name)
	}
	return 0, &UnknownTriggerError{Agent: cfg.Name, Trigger: name, Names: names}
}

// Pause keeps a trigger that cfg declares from firing by itself until Resume, or until the
// pause's own end, also in the next runs; see memory.Paused.Again.
func (t *Triggers) Pause(ctx context.Context, cfg *config.Agent, name string, asked memory.Paused) error {
	return t.setPause(ctx, cfg, name, func(m *memory.Trigger) { m.Pause(asked) })
}

// Resume ends a trigger's pause. What fell due for its schedule meanwhile is not made up
// for; files and what a command prints are found.
func (t *Triggers) Resume(ctx context.Context, cfg *config.Agent, name string) error {
	return t.setPause(ctx, cfg, name, func(m *memory.Trigger) { m.Resume(time.Now()) })
}

// setPause changes the pause of one trigger, durably, and then stops it or starts it.
func (t *Triggers) setPause(ctx context.Context, cfg *config.Agent, name string, change func(*memory.Trigger)) error {
	i, err := Find(cfg, name)
	if err != nil {
		return err
	}
	t.f.changing.Lock()
	defer t.f.changing.Unlock()
	r, was := t.remember(cfg), t.isPaused(name)
	undo := r.all[i].Try(change)
	if err := r.memory.Save(); err != nil {
		undo() // who asked for it is told that it was not done
		return err
	}
	t.recallPaused(cfg, r)
	if !was && !t.isPaused(name) {
		return nil
	}
	one := t.declared(cfg, i)
	one.works() // what failed is not tried again now
	if one.Webhook != nil {
		return nil // it answers in both cases
	}
	if stop := t.stops[name]; stop != nil {
		stop()
		delete(t.stops, name)
	}
	t.startOne(ctx, cfg, r, i)
	return nil
}

// Paused returns the triggers that are paused, in the order of the declaration.
func (t *Triggers) Paused() (all []memory.PausedTrigger) {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	for _, p := range t.paused {
		if !p.Over(time.Now()) {
			all = append(all, p)
		}
	}
	return all
}

// pause returns the present pause of a trigger; the zero value: it has none.
func (t *Triggers) pause(name string) memory.Paused {
	for _, p := range t.Paused() {
		if p.Trigger == name {
			return p.Paused
		}
	}
	return memory.Paused{}
}

// isPaused reports whether a trigger is paused now.
func (t *Triggers) isPaused(name string) bool { return !t.pause(name).Since.IsZero() }

// recallPaused takes over which triggers are paused.
func (t *Triggers) recallPaused(cfg *config.Agent, r recollection) {
	paused := memory.PausedTriggers(cfg, r.all, time.Now())
	t.refusing.Lock()
	defer t.refusing.Unlock()
	t.paused = paused
}

// endPause records that the pause of a trigger is over, if it had one.
func (t *Triggers) endPause(name string, r recollection, i int) {
	m := r.all[i]
	if !m.HasPause() {
		return
	}
	m.Resume(time.Now())
	r.memory.SaveSoon()
	t.f.opt.Note(journal.Event{Agent: t.name, Kind: journal.Resumed, Trigger: name, Reason: "its pause is over"})
}
