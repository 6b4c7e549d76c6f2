package orchestrator

import (
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/session"
)

// accounts are those that the agents work on.
type accounts map[account.ID]*account.Account

// accountLocked is the account that an agent works on, as far as it is known: it
// is found out before its session starts. nil: it is not known yet.
func (s *Scheduler) accountLocked(a *agent) *account.Account {
	if a.account == "" {
		return nil
	}
	c := s.accounts[a.account]
	if c == nil {
		c = &account.Account{}
		s.accounts[a.account] = c
	}
	return c
}

// mayLocked asks an agent's account whether it may start. One that may not is
// parked.
func (s *Scheduler) mayLocked(a *agent, now time.Time) bool {
	c := s.accountLocked(a)
	if c == nil {
		return true
	}
	answer := c.May(a.name, now)
	if answer.May {
		return true
	}
	s.followLocked(a, next{state: Parked, until: answer.Until, reason: answer.Reason})
	if b := s.findLocked(answer.Wake); b != nil {
		s.unparkLocked(b)
	}
	return false
}

// admit notes which account a session will work on, whose start has begun, and
// reports whether it may go on.
func (s *Scheduler) admit(a *agent, id account.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.account == id {
		return true
	}
	s.leaveAccountLocked(a)
	a.account = id
	if s.mayLocked(a, time.Now()) {
		return true
	}
	s.vacatedLocked(a)
	s.slotFreedLocked()
	return false
}

// leaveAccountLocked is for an agent whose account is not known any more.
func (s *Scheduler) leaveAccountLocked(a *agent) {
	if c := s.accountLocked(a); c != nil {
		s.askLocked(c, c.Leaves(a.name))
		a.account = ""
	}
}

// declinesLocked is for an agent that does not start a session, or whose session
// says nothing of its account.
func (s *Scheduler) declinesLocked(a *agent) {
	if c := s.accountLocked(a); c != nil {
		s.askLocked(c, c.Declines(a.name))
	}
}

// askLocked lets those ask again that an account told to wait.
func (s *Scheduler) askLocked(c *account.Account, ask bool) {
	if !ask {
		return
	}
	for _, name := range c.Waiting() {
		if a := s.findLocked(name); a != nil {
			s.unparkLocked(a)
		}
	}
}

// unparkLocked looks again at an agent that is parked.
func (s *Scheduler) unparkLocked(a *agent) {
	if a.state != Parked || s.stopping {
		return
	}
	s.enterLocked(a, Idle, "its account is asked again", time.Time{})
	s.wg.Go(func() { s.noticed(a) })
}

// worksLocked notes that an agent has acknowledged an entry.
func (s *Scheduler) worksLocked(a *agent) {
	if c := s.accountLocked(a); c != nil {
		s.askLocked(c, c.Works(a.name, a.started, time.Now()))
	}
}

// judgedLocked takes what a session's end says of its account. Where that is to
// blame, it returns what follows for the agent.
func (s *Scheduler) judgedLocked(a *agent, o session.Outcome, now time.Time) (n next, blamed bool) {
	if o.Acknowledged > a.last.Acknowledged {
		s.worksLocked(a)
	}
	c := s.accountLocked(a)
	if o.Why != hook.EndAPIFailure || faultOf(o.Detail) != accountFault {
		s.declinesLocked(a)
		return next{}, false
	}
	if c == nil { // it was started before the account was known
		c = &account.Account{}
	}
	p := c.Failed(a.name, describe(o), now, roll())
	if p.All {
		for _, w := range s.slots.Line() {
			if w.account == a.account {
				s.mayLocked(w, now)
			}
		}
	}
	s.askLocked(c, p.Ask)
	return next{state: Parked, until: p.Until, reason: p.Reason}, true
}

// parkedLocked is until when the account that is parked longest is.
func (s *Scheduler) parkedLocked(now time.Time) (until time.Time) {
	for _, c := range s.accounts {
		if u := c.Parked(now); u.After(until) {
			until = u
		}
	}
	return until
}
