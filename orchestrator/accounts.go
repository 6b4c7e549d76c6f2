package orchestrator

import (
	"cmp"
	"context"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// parking is an account's no, as the agent understands it.
func parking(p account.Parking, now time.Time) agent.Parking {
	return agent.Parking{Until: deadline.Shown(p.Until, now), Person: p.Person, Reason: p.Reason, Fix: p.Fix, Limit: p.Source != "" && !p.Person, Known: p.Known()}
}

// askAgain makes members that were told to wait ask their account again.
func (f *fleet) askAgain(names []string) {
	for _, name := range names {
		if m := f.find(name); m != nil && f.works() {
			m.Unparks()
			f.touch(m)
		}
	}
}

// may asks a member's account whether it may start. One that may not is parked.
func (f *fleet) may(m *member, now time.Time) bool {
	if p := f.above(m, now); p != nil {
		f.declines(m, now)
		m.Parks(*p, now)
		return false
	}
	answer := f.accounts.May(m.Name, now)
	if answer.May {
		return true
	}
	m.Parks(parking(answer.Parking, now), now)
	f.askAgain([]string{answer.Wake})
	return false
}

// parkAll carries a parking out that holds for all of an account: of who the member
// is. Sessions end after the turn that they are in; each that is in one when a limit
// falls is refused once at most, and no other.
func (f *fleet) parkAll(m *member, p account.Parking, now time.Time) {
	for _, w := range f.line.Line() {
		if f.accounts.Share(w.Name, m.Name) {
			f.may(w, now)
			f.touch(w)
		}
	}
	if !p.Known() {
		return
	}
	for _, o := range f.members {
		if o != m && f.accounts.Share(o.Name, m.Name) {
			o.FinishForLimit("its account is parked until " + p.Until.Format(time.RFC3339))
			f.touch(o)
		}
	}
}

// above says until when nothing is started for a member because more of its account's
// limits is used than it may use; nil: it may start.
func (f *fleet) above(m *member, now time.Time) *agent.Parking {
	l := m.Def().Limits
	holds, until := l.Active.At(now.In(cmp.Or(m.Def().Zone, time.Local)))
	resets, why := f.accounts.Above(m.Name, l.FiveHour, l.SevenDay, now)
	if !holds || why == "" {
		return nil
	}
	if until.IsZero() || resets.Before(until) {
		until = resets
	}
	return &agent.Parking{Until: deadline.On(until, now, account.Furthest), Reason: why, Known: true, Room: true}
}

// shows takes what a member's client shows of its account's limits.
func (f *fleet) shows(m *member, limits client.Limits) {
	if !f.accounts.Shows(m.Name, limits) {
		return
	}
	for _, o := range f.members {
		if f.accounts.Share(o.Name, m.Name) {
			f.touch(o)
		}
	}
}

// leavesRoom ends a member's session after its turn that may not use more of its
// account's limits: because of what is shown, or because its active hours have begun.
func (f *fleet) leavesRoom(m *member, now time.Time) {
	if m.live == nil {
		return
	}
	if p := f.above(m, now); p != nil {
		m.FinishForLimit(p.Reason)
	}
}

// asksLoginAgain has the account of a member be asked again that has refused its login,
// if that may be another one now.
func (s *Scheduler) asksLoginAgain(m *member, now time.Time) {
	if !m.LoginChanged() {
		return
	}
	s.log.Info("the login may be another one: its account is asked again by the next prompt", "agent", m.Name)
	s.fleet.askAgain(s.fleet.accounts.Clear(m.Name))
	m.Unparks()
}

// hasDone notes that a member has done an entry, isAnswered that the model has
// answered it.
func (f *fleet) hasDone(m *member, now time.Time) {
	_, started := m.Session()
	f.askAgain(f.accounts.Works(m.Name, started, now))
}

func (f *fleet) isAnswered(m *member, now time.Time) {
	_, started := m.Session()
	f.askAgain(f.accounts.Answers(m.Name, started))
}

// declines is for a member that does not start a session, or whose session says
// nothing about its account.
func (f *fleet) declines(m *member, now time.Time) {
	f.askAgain(f.accounts.Declines(m.Name))
}

// accountsKept names what is known of parked accounts among what is owed to the store.
const accountsKept = "until when accounts are parked"

// keepAccounts saves what is known of parked accounts for the next run, if that has
// changed.
func (s *Scheduler) keepAccounts(now time.Time) {
	kept, anew := s.fleet.accounts.Kept(now)
	if !anew {
		return
	}
	s.opt.Store.Owe(accountsKept, func() error {
		return s.opt.Store.Write(context.Background(), func(c *store.Change) error { return account.Keep(c, kept) })
	})
}
