package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proving"
)

// tendAsides brings what is set aside of a member's queue in line with what people have
// answered. It returns false where that has to be tried again.
func (s *Scheduler) tendAsides(ctx context.Context, m *member, cfg *config.Agent) bool {
	w, err := s.desk.Tend(ctx, cfg, m.key)
	if err != nil {
		s.log.Warn("cannot see to what waits for approval", "agent", m.Name, "err", err)
	}
	s.mu.Lock()
	same := m.Asides() == len(w.Deliveries) && w.Returning == 0 && len(w.Applied) == 0
	s.mu.Unlock()
	if !same && err == nil {
		s.happened(m, func(now time.Time) { s.tookAsides(m, w, now) })
	}
	return err == nil
}

// hasAsides reports whether anything of a member's queue is set aside.
func (s *Scheduler) hasAsides(m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.Asides() > 0
}

func (s *Scheduler) tookAsides(m *member, w proving.Waiting, now time.Time) {
	for _, v := range w.Applied {
		switch {
		case v.Passed:
			m.ProvenAside()
			s.fleet.hasDone(m, now)
		case v.GiveUp != "":
			m.DeadLettered()
		}
	}
	m.SetAside(w.Deliveries)
	if w.Returning > 0 {
		m.Returns()
	}
}

// setAside says that the entry in flight of a member was set aside.
func (s *Scheduler) setAside(m *member, delivery string) {
	s.happened(m, func(now time.Time) {
		m.Judged(now)
		m.SetAside(append(m.WaitAside(), delivery))
	})
}

// holdsUp reports whether a request keeps its agent from working until it is answered:
// one about an entry that is set aside does not.
func (s *Scheduler) holdsUp(m *member) func(approval.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	aside := map[string]bool{}
	for _, d := range m.WaitAside() {
		aside[d] = true
	}
	return func(r approval.Request) bool { return !r.Aside && (r.Entry == "" || !aside[r.Entry]) }
}

// apart returns the conversation in which the entry in flight of a member goes on if that
// was set aside once, or "". Its session takes nothing else: the queue has gone on with
// another conversation.
func (c course) apart(p *hook.Policy, failed, unproven *inbox.InFlight) string {
	f := cmp.Or(failed, unproven)
	if f == nil || f.Aside == nil {
		return ""
	}
	p.Context = hook.ContextEntry
	return c.desk.ConversationOf(c.m.key, f)
}

// conversationOf returns the conversation in which a member's entry in flight was worked
// on, or "".
func (s *Scheduler) conversationOf(m *member) func(*inbox.InFlight) string {
	return func(f *inbox.InFlight) string { return launch.Of(s.opt.StateDir, m.key, f) }
}

// Asides are the state directory's copies of what is set aside, where no scheduler looks
// after them.
type Asides struct {
	desk *proving.Desk
	key  string
}

// AsidesOf returns those of an agent.
func AsidesOf(f *config.Fleet, stateDir string, a *config.Agent) (Asides, error) {
	d := Asides{desk: proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})}
	if none, err := d.desk.NoAsides(); none || err != nil {
		return d, err
	}
	known, err := memory.Read(stateDir)
	if err == nil {
		d.key = known.Follow(f.Agents, time.Now()).Declared()[a.Name].Key
	}
	return d, err
}

// Dropped forgets those that are dead letters now (proving.Desk.Dropped).
func (d Asides) Dropped(ctx context.Context, a *config.Agent) error {
	if d.key == "" {
		return nil
	}
	return d.desk.Dropped(ctx, a, d.key)
}

// Ends forgets one that is about to end.
func (d Asides) Ends(delivery string) error {
	if d.key == "" {
		return nil
	}
	return d.desk.NotAside(d.key, delivery)
}
