package account

import (
	"time"

	"heartbeat/hook/client"
)

// Ledger knows which accounts the agents of a fleet use. An agent's account is found
// out before its session starts. The zero value knows none. A Ledger is not safe for
// use by several goroutines.
type Ledger struct {
	of       map[string]ID // :: agent → its account
	accounts map[ID]*Account
	changed  bool // since Kept was asked
}

func (l *Ledger) account(agent string) *Account { return l.accounts[l.of[agent]] }

// Joins notes which account an agent uses. ask are the agents of the account that it
// has left, which should ask again; changed is false if nothing has changed.
func (l *Ledger) Joins(agent string, id ID) (ask []string, changed bool) {
	if was, known := l.of[agent]; known && was == id {
		return nil, false
	}
	ask = l.Leaves(agent)
	if l.of == nil {
		l.of, l.accounts = map[string]ID{}, map[ID]*Account{}
	}
	l.of[agent] = id
	if l.accounts[id] == nil {
		l.accounts[id] = &Account{}
	}
	return ask, true
}

// Leaves notes that the account of an agent is no longer known.
func (l *Ledger) Leaves(agent string) (ask []string) {
	if c := l.account(agent); c != nil {
		ask = asked(c, c.Leaves(agent))
		delete(l.of, agent)
	}
	return ask
}

// May asks whether an agent may start; one whose account is not known may.
func (l *Ledger) May(agent string, now time.Time) Answer {
	if c := l.account(agent); c != nil {
		return c.May(agent, now)
	}
	return Answer{May: true}
}

// Declines notes that an agent does not start a session, or that its session says
// nothing about its account.
func (l *Ledger) Declines(agent string) (ask []string) {
	if c := l.account(agent); c != nil {
		return asked(c, c.Declines(agent))
	}
	return nil
}

// Works notes that an agent has done an entry; see Account.Works.
func (l *Ledger) Works(agent string, began, now time.Time) (ask []string) {
	if c := l.account(agent); c != nil {
		return l.opened(c, c.Works(agent, began, now))
	}
	return nil
}

// Answers notes that the model has answered an agent; see Account.Answers.
func (l *Ledger) Answers(agent string, began time.Time) (ask []string) {
	if c := l.account(agent); c != nil {
		return l.opened(c, c.Answers(agent, began))
	}
	return nil
}

// Failed notes that an agent's session ended because of its account, which may have
// become unknown meanwhile.
func (l *Ledger) Failed(agent string, f Failure, now time.Time, roll float64) (p Parking, ask []string) {
	c := l.account(agent)
	if c == nil {
		c = &Account{}
	}
	p, l.changed = c.Failed(agent, f, now, roll), true
	return p, asked(c, p.Ask)
}

// Share reports whether two agents are known to use one account.
func (l *Ledger) Share(a, b string) bool {
	one, known := l.of[a]
	other, also := l.of[b]
	return known && also && one == other
}

// Clear forgets what is known about an agent's account: a person knows better.
func (l *Ledger) Clear(agent string) (ask []string) {
	if c := l.account(agent); c != nil {
		c.Clear()
		return l.opened(c, true)
	}
	return nil
}

// Parked returns until when the account is parked that is parked longest.
func (l *Ledger) Parked(now time.Time) (until time.Time) {
	for _, c := range l.accounts {
		if u := c.Parked(now); u.After(until) {
			until = u
		}
	}
	return until
}

// opened records that an account may work again.
func (l *Ledger) opened(c *Account, ask bool) []string {
	l.changed = l.changed || ask
	return asked(c, ask)
}

func asked(c *Account, ask bool) []string {
	if !ask {
		return nil
	}
	return c.Waiting()
}

// Shows notes how far an account's limits are used, as an agent's client has shown it.
// Each report repeats what its client has shown last, perhaps long ago: so the highest
// figure of a window counts, and a later window replaces an earlier one.
func (l *Ledger) Shows(agent string, limits client.Limits) (changed bool) {
	c := l.account(agent)
	if c == nil {
		return false
	}
	latest := client.Limits{FiveHour: newer(c.shown.FiveHour, limits.FiveHour), SevenDay: newer(c.shown.SevenDay, limits.SevenDay)}
	if latest == c.shown {
		return false
	}
	c.shown, l.changed = latest, true
	return true
}

// newer returns what is shown of a window, if that is more than before.
func newer(was, is client.Limit) client.Limit {
	if is.Resets.After(was.Resets) || is.Resets.Equal(was.Resets) && is.Used > was.Used {
		return is
	}
	return was
}

// Above is Account.Above of an agent's account.
func (l *Ledger) Above(agent string, fiveHour, sevenDay int, now time.Time) (until time.Time, why string) {
	if c := l.account(agent); c != nil {
		return c.Above(fiveHour, sevenDay, now)
	}
	return time.Time{}, ""
}

// Hurry is Account.Hurry of an agent's account.
func (l *Ledger) Hurry(agent string, after time.Duration) {
	if c := l.account(agent); c != nil {
		c.Hurry(agent, after)
	}
}
