package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
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

// enqueue puts one fire of a trigger into its agent's inbox. The label makes
// it one fire: repeating it after a crash between enqueue and record changes
// nothing.
func (s *Scheduler) enqueue(ctx context.Context, a *agent, t *config.Trigger, p sources.Prompt) error {
	source := a.cfg.Name + "/" + t.Name + "@" + p.Label
	q, err := operator.Open(a.cfg)
	if err != nil {
		return err
	}
	defer q.Close()
	if t.Cron != nil && t.Cron.Overlap == config.OverlapSkip {
		switch there, err := stillThere(q, source); {
		case err != nil:
			return err
		case there:
			s.note(Event{Agent: a.cfg.Name, Kind: "skipped", Trigger: source, Reason: "its last fire is still queued or in flight"})
			s.log.Info("trigger skipped: its last fire is not done", "agent", a.cfg.Name, "trigger", t.Name)
			return nil
		}
	}
	_, err = q.Append(ctx, inbox.Letter{ID: source, Source: source, Prompt: p.Text, Idempotent: true})
	if errors.Is(err, inbox.ErrDuplicate) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot queue a prompt for agent %q: %w", a.cfg.Name, err)
	}
	s.note(Event{Agent: a.cfg.Name, Kind: "fired", Trigger: source})
	s.log.Info("trigger fired", "agent", a.cfg.Name, "trigger", t.Name, "label", p.Label)
	s.noticed(a)
	return nil
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
}

func openMemory(stateDir, agent string) (*memory, error) {
	m := &memory{path: filepath.Join(stateDir, "triggers", agent+".json")}
	m.data.Fired, m.data.Seen = map[string]time.Time{}, map[string]sources.Seen{}
	var kept remembered
	if err := state.Load(m.path, &kept); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return m, nil
		}
		return nil, err
	}
	maps.Copy(m.data.Fired, kept.Fired)
	maps.Copy(m.data.Seen, kept.Seen)
	return m, nil
}

// change alters the memory and keeps it.
func (m *memory) change(f func(*remembered)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.data)
	return state.Save(m.path, m.data)
}

// startTriggers starts what fires: for a run with Once nothing, or, with
// Fire, everything one time.
func (s *Scheduler) startTriggers(ctx context.Context) {
	if s.opt.Once {
		if s.opt.Fire {
			s.fireAll(ctx)
		}
		return
	}
	table, files := sources.NewTimetable(), watch.New()
	for _, a := range s.agents {
		m, err := openMemory(s.opt.StateDir, a.cfg.Name)
		if err != nil {
			s.log.Error("the agent's triggers do not run", "agent", a.cfg.Name, "err", err)
			continue
		}
		for i := range a.cfg.Triggers {
			s.startTrigger(ctx, a, &a.cfg.Triggers[i], m, table, files)
		}
	}
	s.wg.Go(func() { table.Run(ctx) })
	s.wg.Go(func() {
		files.Run(ctx, func(err error) { s.log.Warn("files are looked at now and then instead", "err", err) })
	})
}

func (s *Scheduler) startTrigger(ctx context.Context, a *agent, t *config.Trigger, m *memory, table *sources.Timetable, files *watch.Watcher) {
	emit := func(ctx context.Context, p sources.Prompt) error { return s.enqueue(ctx, a, t, p) }
	remember := func(f func(*remembered)) {
		if err := m.change(f); err != nil {
			s.log.Warn("cannot remember a fire", "agent", a.cfg.Name, "trigger", t.Name, "err", err)
		}
	}
	switch {
	case t.Cron != nil:
		tmpl, err := sources.ParseCronTemplate(t.Cron.Prompt)
		if err != nil {
			s.log.Error("trigger does not run", "agent", a.cfg.Name, "trigger", t.Name, "err", err)
			return
		}
		table.Set(a.cfg.Name+"/"+t.Name, sources.Cron{
			Schedule: t.Cron.Schedule, Missed: t.Cron.Missed, Last: m.data.Fired[t.Name], Template: tmpl, Emit: emit,
			Record: func(at time.Time) { remember(func(r *remembered) { r.Fired[t.Name] = at }) },
			Failed: s.triggerFailed(a, t),
		})
	case t.Watch != nil:
		w, err := s.watchTrigger(a, t, emit)
		if err == nil {
			w.Seen = m.data.Seen[t.Name]
			w.Record = func(seen sources.Seen) { remember(func(r *remembered) { r.Seen[t.Name] = seen }) }
			err = files.Set(a.cfg.Name+"/"+t.Name, w)
		}
		if err != nil {
			s.log.Error("trigger does not run", "agent", a.cfg.Name, "trigger", t.Name, "err", err)
		}
	case t.Poll != nil:
		p, err := s.pollTrigger(a, t, emit)
		if err != nil {
			s.log.Error("trigger does not run", "agent", a.cfg.Name, "trigger", t.Name, "err", err)
			return
		}
		if t.Poll.Overlap == config.OverlapSkip {
			p.Run = s.unlessQueued(a, t)
		}
		s.wg.Go(func() { poll.Run(ctx, p) })
	}
}

func (s *Scheduler) triggerFailed(a *agent, t *config.Trigger) func(time.Time, error, time.Duration) {
	return func(_ time.Time, err error, retry time.Duration) {
		s.note(Event{Agent: a.cfg.Name, Kind: "trigger-failed", Trigger: t.Name, Reason: err.Error(), Until: time.Now().Add(retry)})
		s.log.Warn("trigger failed", "agent", a.cfg.Name, "trigger", t.Name, "err", err, "retry", retry)
	}
}

// fireAll fires each trigger one time: cron its prompt; poll one run; watch
// every file that matches now, whatever was seen before. The labels are this
// run's own, so that the next such run fires again.
func (s *Scheduler) fireAll(ctx context.Context) {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	for _, a := range s.agents {
		for i := range a.cfg.Triggers {
			t := &a.cfg.Triggers[i]
			emit := func(ctx context.Context, p sources.Prompt) error {
				p.Label += "+fire-" + run
				return s.enqueue(ctx, a, t, p)
			}
			s.mu.Lock()
			s.firing++
			s.mu.Unlock()
			s.wg.Go(func() {
				defer s.fired()
				if err := s.fireOnce(ctx, a, t, emit); err != nil && ctx.Err() == nil {
					s.triggerFailed(a, t)(time.Now(), err, 0)
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
