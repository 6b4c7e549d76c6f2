package orchestrator

import (
	"time"

	"heartbeat/orchestrator/agent"
)

// askAgain has members ask their account again that were told to wait.
func (f *fleet) askAgain(names []string, now time.Time) {
	for _, name := range names {
		if m := f.find(name); m != nil && f.works() {
			m.Unparks(now)
			f.touch(m)
		}
	}
}

// may asks a member's account whether it may start. One that may not is parked.
func (f *fleet) may(m *member, now time.Time) bool {
	answer := f.accounts.May(m.Name, now)
	if answer.May {
		return true
	}
	m.Parks(agent.Parking{Until: answer.Until, Reason: answer.Reason})
	f.askAgain([]string{answer.Wake}, now)
	return false
}

// hasDone notes that a member has done an entry.
func (f *fleet) hasDone(m *member, now time.Time) {
	_, started := m.Session()
	f.askAgain(f.accounts.Works(m.Name, started, now), now)
}

// declines is for a member that does not start a session, or whose session says
// nothing of its account.
func (f *fleet) declines(m *member, now time.Time) {
	f.askAgain(f.accounts.Declines(m.Name), now)
}
