// Package account knows whose account an agent works on, and when it may: a
// usage limit or a login that ran out concerns all agents of one account, and
// nobody else.
//
// The policy is pure: it is told what sessions came to, and answers who may
// start. It cannot see a limit; it has only failures to go by, and what tells of
// them the agent can write. One agent's may be its own (a model that it may not
// use, a budget of its own) or made up, so it holds back nobody else until a
// second one confirms it; after a parking one agent at a time finds out whether
// the account works again, never the same one first.
package account

import (
	"fmt"
	"time"

	"heartbeat/sources"
)

// How long is parked: base, doubled for each failure in a row, up to the limit.
const (
	parkBase = time.Minute
	parkMax  = time.Hour
)

// Patience is how long the others wait for the one that tries the account. The
// client 2.1.329 gives up on a limited one after 3 minutes at most.
const Patience = 4 * time.Minute

// Account is what is known of one account. The zero value is one that works.
// An Account is not safe for use by several goroutines.
type Account struct {
	until  time.Time // nobody starts before
	parked int       // how often in a row, all of them
	failed time.Time // when an agent last failed, since the account last worked
	reason string
	probe  string    // who tries it, or ""
	since  time.Time // when that was decided

	agents map[string]*member
	came   int
}

// member is an agent as its account sees it.
type member struct {
	failed time.Time // last, unless it has worked since
	fails  int       // in a row
	until  time.Time // it does not start before
	worked time.Time // last
	reason string    // why it failed
	acks   int       // entries done since an agent of the account failed last
	waits  int       // its place among those that were told to wait; 0: it does not
}

// Answer says whether an agent may start.
type Answer struct {
	May bool
	// Until is when to ask again where it may not, Reason why.
	Until  time.Time
	Reason string
	// Wake, when not "", is another agent that is to ask now: it is its turn.
	Wake string
}

// May asks whether an agent that has work may start at a time.
func (c *Account) May(agent string, now time.Time) Answer {
	m := c.member(agent)
	switch {
	case now.Before(c.until):
		return c.wait(m, c.until, c.reason)
	case now.Before(m.until):
		return c.wait(m, m.until, m.reason)
	case c.parked == 0: // what one has found concerns that one
		m.waits = 0
		return Answer{May: true}
	case c.probe != "" && !now.Before(c.since.Add(Patience)):
		c.opens() // it would have failed by now
		m.waits = 0
		return Answer{May: true}
	case c.probe == "":
		c.probe, c.since = c.turn(agent, now), now
	}
	if c.probe == agent {
		m.waits, c.since = 0, now
		return Answer{May: true}
	}
	a := c.wait(m, c.since.Add(Patience), fmt.Sprintf("%s tries the account first", c.probe))
	if c.agents[c.probe].waits > 0 {
		a.Wake = c.probe
	}
	return a
}

func (c *Account) wait(m *member, until time.Time, reason string) Answer {
	if m.waits == 0 {
		c.came++
		m.waits = c.came
	}
	return Answer{Until: until, Reason: reason}
}

// turn is whose turn it is to try the account: of those that wait and may, the
// one whose failure is the longest ago, then the one that has waited longest.
func (c *Account) turn(agent string, now time.Time) string {
	best := agent
	for name, m := range c.agents {
		b := c.agents[best]
		switch {
		case m.waits == 0 || now.Before(m.until):
		case m.failed.Before(b.failed), m.failed.Equal(b.failed) && b.waits > 0 && m.waits < b.waits:
			best = name
		}
	}
	return best
}

// Declines notes that an agent that may start does not, or not any more. It
// reports whether others are to be asked again.
func (c *Account) Declines(agent string) (ask bool) {
	if m := c.agents[agent]; m != nil {
		m.waits = 0
	}
	if c.probe != agent {
		return false
	}
	c.probe = ""
	return true
}

// Works notes that an agent has done an entry in a session that began at a
// time. An entry that was under way when an agent failed proves nothing. It
// reports whether others are to be asked again.
func (c *Account) Works(agent string, began, now time.Time) (ask bool) {
	m := c.member(agent)
	m.failed, m.fails, m.until, m.worked = time.Time{}, 0, time.Time{}, now
	if m.acks++; c.sound() || !began.After(c.failed) && m.acks < 2 {
		return false
	}
	c.opens()
	return true
}

// opens is for an account that works.
func (c *Account) opens() {
	c.until, c.parked, c.failed, c.probe = time.Time{}, 0, time.Time{}, ""
}

// sound reports whether there is nothing to find out.
func (c *Account) sound() bool { return c.failed.IsZero() }

// Failed notes that an agent's session ended by a fault of the account. roll in
// [0, 1) is the jitter.
func (c *Account) Failed(agent, why string, now time.Time, roll float64) Parking {
	m := c.member(agent)
	tried := c.Declines(agent)
	before := m.failed
	m.failed, m.fails = now, m.fails+1
	m.until = now.Add(sources.Backoff(m.fails, parkBase, parkMax, roll))
	m.reason = "the account of " + agent + ": " + why
	if !before.IsZero() && c.othersWorkSince(agent, before) {
		m.reason += "; it works for others"
		return c.parks(m, now, tried)
	}
	switch {
	case now.Before(c.until): // several hit one limit together
	case c.parked > 0 && tried, c.confirms(agent, now):
		c.reason = m.reason
		c.parked++
		c.until = now.Add(sources.Backoff(c.parked, parkBase, parkMax, roll))
	}
	c.failed = now
	for _, o := range c.agents {
		o.acks = 0
	}
	return c.parks(m, now, tried)
}

// parks is what follows for an agent that has failed.
func (c *Account) parks(m *member, now time.Time, tried bool) Parking {
	if now.Before(c.until) {
		c.wait(m, c.until, c.reason)
		return Parking{Until: c.until, Reason: c.reason, All: true}
	}
	c.wait(m, m.until, m.reason)
	return Parking{Until: m.until, Reason: m.reason, Ask: tried}
}

// Parking is what follows a failure.
type Parking struct {
	Until  time.Time // the agent does not start before
	Reason string
	All    bool // it holds for all agents of the account
	Ask    bool // others are to be asked again
}

// confirms reports whether another agent has failed, too, and not long ago, and
// none but that one has worked since.
func (c *Account) confirms(agent string, now time.Time) bool {
	for name, o := range c.agents {
		if name != agent && !o.failed.IsZero() && (now.Before(o.until) || now.Sub(o.failed) < Patience) &&
			!c.othersWorkSince(name, o.failed) {
			return true
		}
	}
	return false
}

func (c *Account) othersWorkSince(agent string, at time.Time) bool {
	for name, o := range c.agents {
		if name != agent && o.worked.After(at) {
			return true
		}
	}
	return false
}

// Waiting are the agents that were told to wait, in no order.
func (c *Account) Waiting() []string {
	var all []string
	for name, m := range c.agents {
		if m.waits > 0 {
			all = append(all, name)
		}
	}
	return all
}

// Clear forgets all that is known: a person knows better.
func (c *Account) Clear() {
	waiting := c.Waiting()
	*c = Account{}
	for _, name := range waiting { // they are to be asked
		c.wait(c.member(name), time.Time{}, "")
	}
}

// Leaves forgets an agent that is not the account's any more. It reports
// whether others are to be asked again.
func (c *Account) Leaves(agent string) (ask bool) {
	ask = c.Declines(agent)
	delete(c.agents, agent)
	return ask
}

// Parked returns until when no agent starts, or zero.
func (c *Account) Parked(now time.Time) time.Time {
	if now.Before(c.until) {
		return c.until
	}
	if c.sound() {
		return time.Time{}
	}
	var until time.Time // the only ones that there are may all have failed
	for _, m := range c.agents {
		if !now.Before(m.until) {
			return time.Time{}
		}
		if until.IsZero() || m.until.Before(until) {
			until = m.until
		}
	}
	return until
}

func (c *Account) member(agent string) *member {
	if c.agents == nil {
		c.agents = map[string]*member{}
	}
	m := c.agents[agent]
	if m == nil {
		m = &member{}
		c.agents[agent] = m
	}
	return m
}
