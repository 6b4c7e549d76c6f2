package agent

import "time"

// login is what an agent is held with whose account has refused it. The client offers no
// way to ask the service about it without a call of the model (2.1.329), so what may be
// seen is looked at: where the person has logged in again, set another key, or changed
// anything else that the answers tell, the account is asked again by the next prompt.
type login struct {
	since   time.Time
	answers string // that were in place soon after the refusal; "": not read yet
	changed bool
}

// refuses starts to look for another login, if only a person can help.
func (a *Agent) refuses(now time.Time) {
	if a.past.parked.Person && !a.wish.removed {
		a.past.login = login{since: now}
		a.alarms.set(Ask, now.Add(askSoon))
	}
}

// lookedAtLogin takes the answers that are in place now, read from the disk.
func (a *Agent) lookedAtLogin(answers string, now time.Time) {
	l := &a.past.login
	if answers == "" {
		answers = "no session can start"
	}
	if l.answers == "" {
		l.answers = answers
	}
	l.changed = answers != l.answers
	a.alarms.set(Ask, now.Add(askDelay(now.Sub(l.since))))
}

// LoginChanged reports whether the account that refused the agent may be asked again: something
// has changed since that may be another login.
func (a *Agent) LoginChanged() bool { return a.life.is == None && a.past.login.changed }
