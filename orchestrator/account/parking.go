// Package account knows which account each agent uses, and when the agent may start:
// a usage limit or an expired login affects all agents of the account, and no others.
//
// The policy is pure: it learns how sessions ended, and answers who may start. If two
// signals agree on when a limit ends (reset.go), the whole account is parked until
// then. Otherwise it has only failures to judge by. One agent's failure may be its own
// (a model that it may not use, a budget of its own) or made up, so it holds back no
// other agent until a second one confirms it. After a parking, one agent at a time
// tries the account, and never the same one first.
//
// What an agent can write parks only its own account, and at most for the length of
// the limit's window.
package account

import (
	"fmt"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/deadline"
	"heartbeat/sources"
)

// How long a parking lasts: base, doubled for each failure in a row, up to the limit.
const (
	parkBase = time.Minute
	parkMax  = time.Hour
)

// Patience is how long the others wait for the agent that tries the account. The
// client 2.1.329 gives up on a limited account after at most 3 minutes.
const Patience = 4 * time.Minute

// Account is what is known of one account. The zero value is one that works.
// An Account is not safe for use by several goroutines.
type Account struct {
	until  time.Time // nobody starts before
	source Source    // how that is known
	person bool      // nobody starts before a person has acted
	parked int       // how often in a row the whole account was parked
	failed time.Time // when an agent last failed, since the account last worked
	reason string
	fix    string        // what a person does about it, or ""
	shown  client.Limits // the latest that a client has shown
	probe  string        // who tries it, or ""
	since  time.Time     // when that was decided

	agents map[string]*member
	came   int
}

// member is an agent as its account sees it.
type member struct {
	failed time.Time // last, unless it has worked since
	fails  int       // in a row
	until  time.Time // it does not start before
	source Source
	person bool      // nor before a person has acted on its account
	worked time.Time // last
	reason string    // why it failed
	fix    string    // what a person does about it, or ""
	acks   int       // entries done since an agent of the account failed last
	waits  int       // its place among those that were told to wait; 0: it does not wait
}

// Answer says whether an agent may start.
type Answer struct {
	May bool
	Parking
	// Wake, if not "", is another agent that should ask now: it is its turn.
	Wake string
}

// May asks whether an agent that has work may start at a time.
func (c *Account) May(agent string, now time.Time) Answer {
	m := c.member(agent)
	switch {
	case c.person, !deadline.Over(c.until, now):
		return c.wait(m, c.parking())
	case m.person, !deadline.Over(m.until, now):
		return c.wait(m, m.parking())
	case c.parked == 0: // one agent's failure affects only that agent
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
	a := c.wait(m, Parking{Until: c.since.Add(Patience), Reason: c.probe + " tries the account first"})
	if c.agents[c.probe].waits > 0 {
		a.Wake = c.probe
	}
	return a
}

func (c *Account) wait(m *member, p Parking) Answer {
	if m.waits == 0 {
		c.came++
		m.waits = c.came
	}
	return Answer{Parking: p}
}

func (c *Account) parking() Parking {
	return Parking{Until: c.until, Source: c.source, Person: c.person, Reason: c.reason, Fix: c.fix, All: true}
}

func (m *member) parking() Parking {
	return Parking{Until: m.until, Source: m.source, Person: m.person, Reason: m.reason, Fix: m.fix}
}

// turn returns the agent that tries the account next: of those that wait and may
// start, the one whose failure is oldest, then the one that has waited longest.
func (c *Account) turn(agent string, now time.Time) string {
	best := agent
	for name, m := range c.agents {
		b := c.agents[best]
		switch {
		case m.waits == 0 || m.person || !deadline.Over(m.until, now):
		case m.failed.Before(b.failed), m.failed.Equal(b.failed) && b.waits > 0 && m.waits < b.waits:
			best = name
		}
	}
	return best
}

// Declines notes that an agent that may start does not, or no longer does. It
// reports whether the others should ask again.
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
// time. An entry that was already worked on when an agent failed proves nothing. It
// reports whether the others should ask again.
func (c *Account) Works(agent string, began, now time.Time) (ask bool) {
	m := c.member(agent)
	m.failed, m.fails, m.until, m.person, m.worked = time.Time{}, 0, time.Time{}, false, now
	if m.acks++; c.sound() || !began.After(c.failed) && (m.acks < 2 || c.known(now)) {
		return false
	}
	c.opens()
	return true
}

// Answers notes that the model has answered an agent in a session that began at a
// time: the account works, whatever becomes of the entry. It reports whether the
// others should ask again.
func (c *Account) Answers(agent string, began time.Time) (ask bool) {
	if c.sound() || c.probe != agent || !began.After(c.failed) {
		return false
	}
	c.opens()
	return true
}

// known reports whether the account is parked until a time that is known.
func (c *Account) known(now time.Time) bool {
	return c.source != ByBackOff && !deadline.Over(c.until, now)
}

// opens records that the account works.
func (c *Account) opens() {
	c.until, c.person, c.parked, c.failed, c.probe = time.Time{}, false, 0, time.Time{}, ""
}

// sound reports whether the account is known to work.
func (c *Account) sound() bool { return c.failed.IsZero() }

// Failure is the end of a session because of its account.
type Failure struct {
	Why string
	// Person is true if only a person can fix it: a login, a bill, the account
	// itself.
	Person bool
	// Fix is what that person does, where it depends on the agent; or "".
	Fix string
	// Reset is when a limit ends.
	Reset Reset
}

// Failed notes that an agent's session ended because of the account. roll in
// [0, 1) is the jitter.
func (c *Account) Failed(agent string, f Failure, now time.Time, roll float64) Parking {
	m := c.member(agent)
	tried := c.Declines(agent)
	f.Reset.At = deadline.On(f.Reset.At, now, Furthest)
	before := m.failed
	m.failed, m.fails, m.person = now, m.fails+1, f.Person
	m.until, m.source = now.Add(sources.Backoff(m.fails, parkBase, parkMax, roll)), ByBackOff
	switch {
	case f.Person:
		m.until, m.source = time.Time{}, ""
	case !f.Reset.At.IsZero():
		m.until, m.source = f.Reset.At, f.Reset.Source
	}
	m.reason, m.fix = "the account of "+agent+": "+f.Why, f.Fix
	shared := f.Reset.Shared()
	if !shared && !before.IsZero() && c.othersWorkSince(agent, before) {
		m.reason += "; it works for others"
		return c.parks(m, now, tried)
	}
	switch {
	case c.person:
	case shared && f.Reset.At.After(c.until):
		c.reason, c.fix, c.until, c.source = m.reason, m.fix, f.Reset.At, f.Reset.Source
		c.parked = max(c.parked, 1)
	case !deadline.Over(c.until, now): // several agents reached one limit together
	case c.parked > 0 && tried, c.confirms(agent, now):
		c.reason, c.fix, c.person = m.reason, m.fix, f.Person
		c.parked++
		c.until, c.source = now.Add(sources.Backoff(c.parked, parkBase, parkMax, roll)), ByBackOff
		if m.source != ByBackOff && !f.Reset.Model {
			c.until, c.source = m.until, m.source // a person may have to end it
		}
	}
	c.failed = now
	for _, o := range c.agents {
		o.acks = 0
	}
	return c.parks(m, now, tried)
}

// parks is what follows for an agent that has failed.
func (c *Account) parks(m *member, now time.Time, tried bool) Parking {
	p := m.parking()
	if c.person || !deadline.Over(c.until, now) && !m.person {
		p = c.parking()
	} else {
		p.Ask = tried
	}
	return c.wait(m, p).Parking
}

// Parking is what follows a failure, or an answer of no.
type Parking struct {
	// The agent does not start before Until; Source is how that is known. With
	// Person it does not start before a person has acted.
	Until  time.Time
	Source Source
	Person bool
	Reason string
	Fix    string // what that person does, where it depends on the agent; or ""
	All    bool   // it applies to all agents of the account
	Ask    bool   // the others should ask again
}

// Known reports whether its end is known: then nothing shortens it.
func (p Parking) Known() bool { return p.Source != ByBackOff && p.Source != "" }

// confirms reports whether another agent has failed too, not long ago, and no other
// agent has worked since.
func (c *Account) confirms(agent string, now time.Time) bool {
	for name, o := range c.agents {
		if name != agent && !o.failed.IsZero() && (!deadline.Over(o.until, now) || now.Sub(o.failed) < Patience) &&
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

// Waiting returns the agents that were told to wait, in no order.
func (c *Account) Waiting() []string {
	var all []string
	for name, m := range c.agents {
		if m.waits > 0 {
			all = append(all, name)
		}
	}
	return all
}

// Clear forgets all failures: a person knows better. It keeps how far the limits are
// used: the share that is left to people is changed in the file.
func (c *Account) Clear() {
	waiting := c.Waiting()
	*c = Account{shown: c.shown}
	for _, name := range waiting { // they should ask
		c.wait(c.member(name), Parking{})
	}
}

// Leaves forgets an agent that no longer uses the account. It reports whether the
// others should ask again.
func (c *Account) Leaves(agent string) (ask bool) {
	ask = c.Declines(agent)
	delete(c.agents, agent)
	return ask
}

// Parked returns until when no agent starts; zero: not parked, or until a person ends
// it.
func (c *Account) Parked(now time.Time) time.Time {
	if c.person {
		return time.Time{}
	}
	if !deadline.Over(c.until, now) {
		return deadline.Shown(c.until, now)
	}
	if c.sound() {
		return time.Time{}
	}
	var until time.Time // all agents of the account may have failed
	for _, m := range c.agents {
		if m.person {
			continue
		}
		if deadline.Over(m.until, now) {
			return time.Time{}
		}
		if until.IsZero() || m.until.Before(until) {
			until = m.until
		}
	}
	return deadline.Shown(until, now)
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

// Above returns until when, and why, an agent does not start that may use at most
// these percentages of its account's limits; zero: it may start. 0 percent is no bound.
func (c *Account) Above(fiveHour, sevenDay int, now time.Time) (until time.Time, why string) {
	shown := standing(c.shown, now)
	for _, w := range []struct {
		client.Limit
		name  string
		bound int
	}{{shown.FiveHour, "five-hour", fiveHour}, {shown.SevenDay, "seven-day", sevenDay}} {
		if w.bound > 0 && w.Used >= float64(w.bound) && now.Before(w.Resets) && w.Resets.After(until) {
			until, why = w.Resets, fmt.Sprintf("%.0f%% of the account's %s limit is used, and limits: %s: %d%% leaves the rest to people", w.Used, w.name, w.name, w.bound)
		}
	}
	return until, why
}

// Hurry makes an agent, and its account, try again soon after the last failure if it is
// not known when the account works again: somebody has sent the agent a prompt.
func (c *Account) Hurry(agent string, after time.Duration) {
	m := c.agents[agent]
	if m == nil || m.failed.IsZero() {
		return
	}
	if at := m.failed.Add(after); m.source == ByBackOff && at.Before(m.until) {
		m.until = at
	}
	last := m.failed
	if c.failed.After(last) {
		last = c.failed
	}
	if at := last.Add(after); c.source == ByBackOff && at.Before(c.until) {
		c.until = at
	}
}
