package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/operator"
	"heartbeat/orchestrator/state"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// trigger is one trigger of an agent, as it was declared when it was started.
type trigger struct {
	*config.Trigger
	a   *agent
	cfg *config.Agent
}

// source names the trigger in entries, and what remembers it.
func (t trigger) source() string { return t.cfg.Name + "/" + t.Name }

// skipsOverlap reports whether a fire is dropped while the last one is not done.
func (t trigger) skipsOverlap() bool { return t.Cron != nil && t.Cron.Overlap == config.OverlapSkip }

// delay is how much later than its schedule a cron trigger fires.
func (t trigger) delay() time.Duration { return sources.Offset(t.Cron.Jitter, t.source()) }

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
		s.note(Event{Agent: t.cfg.Name, Kind: "skipped", Trigger: source, Reason: skipped})
		s.log.Info("trigger skipped", "agent", t.cfg.Name, "trigger", t.Name, "why", skipped)
		return skipped, nil
	}
	moves := s.movesOf(t.a)
	letter := inbox.Letter{ID: source, Source: source, Prompt: p.Text, Idempotent: true}
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
	s.note(Event{Agent: t.cfg.Name, Kind: "fired", Trigger: source, Due: p.Due})
	s.log.Info("trigger fired", "agent", t.cfg.Name, "trigger", t.Name, "label", p.Label)
	s.queued(t.a, moves)
	return "", nil
}

// memory is what an agent's triggers remember over restarts, by trigger
// name: triggers/AGENT.json in the state directory.
type memory struct {
	mu   sync.Mutex
	path string
	data remembered
}

type remembered struct {
	Fired map[string]time.Time    `json:"fired,omitempty"` // cron: the last fire
	Seen  map[string]sources.Seen `json:"seen,omitempty"`  // watch: what the files were
	Kept  map[string][]string     `json:"kept,omitempty"`  // poll with dedupe: what has fired
	// Polled is when a poll's last good run began.
	Polled map[string]time.Time `json:"polled,omitempty"`
}

// openMemory reads an agent's memory. With ErrDamaged it is an empty one.
func openMemory(stateDir, agent string) (*memory, error) {
	m := &memory{path: filepath.Join(stateDir, "triggers", agent+".json")}
	m.data = remembered{Fired: map[string]time.Time{}, Seen: map[string]sources.Seen{}, Kept: map[string][]string{}, Polled: map[string]time.Time{}}
	var kept remembered
	if err := state.Load(m.path, &kept); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return m, nil
		}
		return m, err
	}
	maps.Copy(m.data.Fired, kept.Fired)
	maps.Copy(m.data.Seen, kept.Seen)
	maps.Copy(m.data.Kept, kept.Kept)
	maps.Copy(m.data.Polled, kept.Polled)
	return m, nil
}

// change alters the memory and keeps it.
func (m *memory) change(f func(*remembered)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.data)
	return state.Save(m.path, m.data)
}

// note alters the memory. The caller has it saved.
func (m *memory) note(f func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.data)
}

func (m *memory) save() error { return m.change(func(*remembered) {}) }

// recordDelay is how long after a fire its time is kept. A crash meanwhile
// makes the next run offer the same label once more, and the inbox refuses it.
const recordDelay = time.Second

// fired returns the last fire of a cron trigger.
func (m *memory) fired(trigger string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Fired[trigger]
}

// seen returns what the files of a watch trigger were.
func (m *memory) seen(trigger string) sources.Seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Seen[trigger]
}

// polled returns what a poll trigger with dedupe has fired for, and when its
// last good run began.
func (m *memory) polled(trigger string) (kept []string, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Kept[trigger], m.data.Polled[trigger]
}

// forget drops what is remembered of triggers that are no longer declared:
// one that comes again is new.
func (m *memory) forget(c *config.Agent) error {
	declared := map[string]bool{}
	for i := range c.Triggers {
		declared[c.Triggers[i].Name] = true
	}
	gone := func(name string) bool { return !declared[name] }
	m.mu.Lock()
	stale := slices.ContainsFunc(m.data.names(), gone)
	m.mu.Unlock()
	if !stale {
		return nil
	}
	return m.change(func(r *remembered) {
		dropIf(r.Fired, gone)
		dropIf(r.Seen, gone)
		dropIf(r.Kept, gone)
		dropIf(r.Polled, gone)
	})
}

// names are the triggers that something is remembered of.
func (r *remembered) names() []string {
	return slices.Concat(slices.Collect(maps.Keys(r.Fired)), slices.Collect(maps.Keys(r.Seen)),
		slices.Collect(maps.Keys(r.Kept)), slices.Collect(maps.Keys(r.Polled)))
}

func dropIf[V any](m map[string]V, gone func(string) bool) {
	maps.DeleteFunc(m, func(name string, _ V) bool { return gone(name) })
}

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

// startAgent starts the triggers of an agent in place of those that it has.
// The caller holds s.changing.
func (s *Scheduler) startAgent(ctx context.Context, a *agent, cfg *config.Agent) {
	s.stopTriggers(a)
	s.forgetFailing(a)
	if s.table == nil {
		return
	}
	m, err := s.memoryOf(a.name)
	if err != nil {
		for i := range cfg.Triggers {
			s.triggerFailed(trigger{&cfg.Triggers[i], a, cfg})(time.Now(), fmt.Errorf("it does not run: %w", err), 0)
		}
		return
	}
	if err := m.forget(cfg); err != nil {
		s.log.Warn("cannot forget triggers that are gone", "agent", a.name, "err", err)
	}
	for i := range cfg.Triggers {
		t := trigger{&cfg.Triggers[i], a, cfg}
		stop, err := s.startTrigger(ctx, t, m)
		if err != nil {
			s.triggerFailed(t)(time.Now(), fmt.Errorf("it does not run: %w", err), 0)
			continue
		}
		a.stops = append(a.stops, stop)
	}
}

// memoryOf returns what an agent's triggers remember. When it cannot be read
// they must not run: they would fire again what they have fired. A memory that
// is damaged is put aside, as no trying again brings it back; what was fired
// last, the inboxes remember as well. The caller holds s.changing.
func (s *Scheduler) memoryOf(agent string) (*memory, error) {
	if m := s.memories[agent]; m != nil {
		return m, nil
	}
	m, err := openMemory(s.opt.StateDir, agent)
	if errors.Is(err, state.ErrDamaged) {
		s.note(Event{Agent: agent, Kind: "trigger-failed", Reason: "its triggers begin anew: " + err.Error()})
		s.log.Error("the agent's triggers begin anew", "agent", agent, "err", err)
		err = os.Rename(m.path, m.path+".damaged")
	}
	if err != nil {
		return nil, err
	}
	s.memories[agent] = m
	return m, nil
}

// stopTriggers stops the triggers of an agent. A fire that is under way goes
// on. The caller holds s.changing.
func (s *Scheduler) stopTriggers(a *agent) {
	for _, stop := range a.stops {
		stop()
	}
	a.stops = nil
}

func (s *Scheduler) startTrigger(ctx context.Context, t trigger, m *memory) (stop func(), err error) {
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
	soon := func(f func(*remembered)) {
		m.note(f)
		s.records.put(m.path, func() { kept(m.save()) })
	}
	switch {
	case t.Cron != nil:
		tmpl, err := sources.ParseCronTemplate(t.Cron.Prompt)
		if err != nil {
			return nil, err
		}
		s.table.Set(t.source(), sources.Cron{
			Schedule: t.Cron.Schedule, Missed: t.Cron.Missed, Grace: t.Cron.Grace, Delay: t.delay(),
			Last: m.fired(t.Name), Template: tmpl, Emit: emit, Slow: t.Gate != nil,
			Record: func(at time.Time) { soon(func(r *remembered) { r.Fired[t.Name] = at }) },
			Failed: s.triggerFailed(t),
		})
		return func() { s.table.Remove(t.source()) }, nil
	case t.Watch != nil:
		w, err := s.watchTrigger(t, emit)
		if err != nil {
			return nil, err
		}
		s.watchFiles(ctx)
		w.Seen = m.seen(t.Name)
		w.Record = func(seen sources.Seen) { kept(m.change(func(r *remembered) { r.Seen[t.Name] = seen })) }
		return func() { s.files.Remove(t.source()) }, s.files.Set(t.source(), w)
	}
	p, err := s.pollTrigger(t, emit)
	if err != nil {
		return nil, err
	}
	p.Kept, p.Last = m.polled(t.Name)
	p.Record = func(fired []string) { kept(m.change(func(r *remembered) { r.Kept[t.Name] = fired })) }
	p.Succeeded = func(at time.Time) {
		s.triggerWorks(t)
		soon(func(r *remembered) { r.Polled[t.Name] = at })
	}
	if t.Poll.Overlap == config.OverlapSkip {
		p.Run = s.unlessQueued(t)
	}
	ctx, cancel := context.WithCancel(ctx)
	s.wg.Go(func() { poll.Run(ctx, p) })
	return cancel, nil
}
