package orchestrator

import (
	"reflect"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// happened is the only way in which anything changes: it applies an event under the
// lock and draws the conclusions, for the member that it is about, or nil, and for
// all others that are concerned. Whatever has to be done outside of this process's
// memory is done afterwards, without the lock.
func (s *Scheduler) happened(m *member, event func(now time.Time)) {
	s.mu.Lock()
	now := s.opt.Now()
	if event(now); m != nil {
		s.fleet.touch(m)
	}
	effects := s.conclude(now)
	s.mu.Unlock()
	for _, effect := range effects {
		effect()
	}
}

// conclude is what follows every event. Nothing else informs readers, hands out
// slots, lets agents go or come, sets timers or ends a run with Once.
func (s *Scheduler) conclude(now time.Time) (effects []func()) {
	f := &s.fleet
	for {
		for len(f.touched) > 0 {
			m := f.touched[0]
			f.touched, m.touched = f.touched[1:], false
			effects = append(effects, s.settle(m, now)...)
		}
		asked := f.asks(now)
		if asked == nil {
			break
		}
		s.fleet.touch(asked)
	}
	s.keepAccounts(now)
	if m := f.next(now); m != nil {
		effects = append(effects, func() { s.queues.look(m) })
	}
	if s.opt.Once && f.mayBeFinished() {
		effects = append(effects, s.finishOnce)
	}
	f.line.arm(now, f.works(), func() { s.happened(nil, func(time.Time) { f.line.lookAt = time.Time{} }) })
	return effects
}

// settle brings what is known about a member in line with what has happened to it.
func (s *Scheduler) settle(m *member, now time.Time) (effects []func()) {
	f := &s.fleet
	if m.gone {
		return nil
	}
	if m.Adopt(now) {
		f.line.Regroup(m, m.Def().Group)
		s.fleet.askAgain(f.accounts.Leaves(m.Name))
	}
	f.leavesRoom(m, now)
	changed := m.Settle(now)
	for _, e := range m.Notes() {
		f.once.news = true
		s.records.note(e)
	}
	if changed != nil {
		s.moved(m, *changed, now)
	}
	if orders, live := m.Orders(), m.live; len(orders) > 0 && live != nil {
		effects = append(effects, func() {
			for _, o := range orders {
				live.Order(o)
			}
		})
	}
	if effect := s.holds.follow(m, now); effect != nil {
		effects = append(effects, effect)
	}
	if m.Abandons() && m.voidCheck != nil {
		m.voidCheck()
	}
	if m.Gone() && f.stage != stopping {
		s.depart(m, now)
		return effects
	}
	s.undertake(m)
	s.check(m)
	if f.works() && m.TakeLook(now) {
		effects = append(effects, func() { s.queues.look(m) })
	}
	f.count(m)
	s.publish(m)
	s.arm(m, now)
	return effects
}

// moved is what follows a change of a member's state.
func (s *Scheduler) moved(m *member, changed journal.Event, now time.Time) {
	f := &s.fleet
	f.line.follow(m)
	f.once.news = true
	s.records.noteMove(m, changed)
	s.opt.Step(m.Name + ": " + changed.State)
	if (m.State() == status.Held || m.State() == status.BackingOff) && !m.OnAccount() {
		f.askAgain(f.accounts.Declines(m.Name))
	}
}

// undertake begins what is to be done with a member now, in the background.
func (s *Scheduler) undertake(m *member) {
	if m.doing == m.Doing() {
		return
	}
	switch m.doing = m.Doing(); m.doing {
	case agent.Starting:
		c := course{s, m, m.Def()}
		s.wg.Go(c.run)
	case agent.Recovering:
		cfg, owed, how := m.Def(), m.Owed(), dealing{cancel: m.Cancels()}
		s.wg.Go(func() { s.orphans.recovery(m, cfg, how, owed) })
	case agent.None, agent.Live:
	}
}

// publish writes what is said about a member for readers, if it has changed.
func (s *Scheduler) publish(m *member) {
	if m.Expected() {
		return
	}
	if now := m.describe(); !reflect.DeepEqual(now, m.told) {
		m.told = now
		s.published.Put(now)
	}
}

// arm sets a member's timer to when something is due.
func (s *Scheduler) arm(m *member, now time.Time) {
	next := m.Next()
	if !s.fleet.works() || m.gone {
		next = time.Time{}
	}
	if next.Equal(m.rings) {
		return
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	if m.rings = next; !next.IsZero() {
		m.timer = time.AfterFunc(next.Sub(now), func() { s.ring(m, next) })
	}
}

// ring is a member's timer.
func (s *Scheduler) ring(m *member, at time.Time) {
	var due []agent.Alarm
	var cfg *config.Agent
	s.happened(m, func(now time.Time) {
		if cfg = m.Def(); m.rings.Equal(at) && s.fleet.works() {
			m.rings = time.Time{}
			due = m.Ring(now)
		}
	})
	for _, alarm := range due {
		switch alarm {
		case agent.Tail:
			s.queues.completeTail(m, cfg)
		case agent.Inspect:
			s.directories.inspect(m)
		case agent.Count:
			s.queues.count(m, cfg)
		case agent.Reclaim:
			s.queues.reclaim(m, cfg)
		case agent.Ask:
			s.foresight.ask(m, cfg)
		case agent.Meet:
			s.foresight.meetAgain(m, cfg)
		}
	}
}

// depart lets a removed member go, and hands on what it had.
func (s *Scheduler) depart(gone *member, now time.Time) {
	f := &s.fleet
	gone.gone = true
	s.arm(gone, now)
	f.count(gone)
	f.line.Leave(gone)
	f.members = slices.DeleteFunc(f.members, func(b *member) bool { return b == gone })
	if !gone.Expected() {
		s.records.note(removed(gone))
	}
	for _, m := range gone.successors {
		if m.Removed() {
			continue
		}
		if m.awaits != nil && (m.awaits.Same(gone.claim) || m.Def().Dir == gone.Def().Dir && gone.claim != nil) {
			m.claim, m.awaits = m.awaits, nil
		}
		m.Succeeds()
		s.fleet.touch(m)
	}
	gone.release()
}
