package orchestrator

import (
	"context"
	"iter"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// fleet is what one lock guards: the agents, and what is known about the fleet.
// While it is held nothing blocks, except small writes into the journal.
type fleet struct {
	declared *config.Fleet
	members  []*member
	locks    *claim.Locks // theirs
	touched  []*member    // those to which something has happened
	line     line
	accounts account.Ledger
	spending usage.Meters // lately
	quit     context.CancelCauseFunc
	stage    stage
	endNow   bool
	stops    *status.Stopping // from stopping on
	clock    time.Time        // when it was last compared; zero: not yet
	once     once
}

// stage is how far a run has got.
type stage int

// The stages. Nothing is started before begun, or from stopping on.
const (
	preparing stage = iota
	begun
	ready // Options.Ready was called
	stopping
)

// shown returns the members that readers see: no two with one name.
func (f *fleet) shown() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, m := range f.members {
			if !m.Expected() && !yield(m) {
				return
			}
		}
	}
}

// find returns the member with a name that was not removed, or nil.
func (f *fleet) find(name string) *member {
	for _, m := range f.members {
		if m.Name == name && !m.Removed() {
			return m
		}
	}
	return nil
}

// holder returns another member that has the directory of a claim; nil: none.
func (f *fleet) holder(c *claim.Claim, of *member) *member {
	for _, m := range f.members {
		if m != of && m.claim.Same(c) {
			return m
		}
	}
	return nil
}

// named returns the members of the names, or all of them.
func (f *fleet) named(names []string) ([]*member, error) {
	if len(names) == 0 {
		return slices.Clone(f.members), nil
	}
	var all []*member
	for _, name := range names {
		m := f.find(name)
		if m == nil {
			return nil, &UnknownAgentError{Agent: name}
		}
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all, nil
}

// works reports whether anything may be started.
func (f *fleet) works() bool { return f.stage == begun || f.stage == ready }

// has reports whether the run has a member's directory, and goes on.
func (f *fleet) has(m *member) bool {
	return f.stage != stopping && !m.Removed() && !m.gone && m.claim != nil
}

// next returns the first that waits and could start now, or nil: its queue is
// looked into first.
func (f *fleet) next(now time.Time) *member {
	if !f.works() || f.line.Full() {
		return nil
	}
	m, ok := f.line.First()
	if !ok || f.line.obstacle(m, now) != "" {
		return nil
	}
	return m
}

// asks makes a session give its slot to an agent that waits for one. It returns
// which one it asked, or nil.
func (f *fleet) asks(now time.Time) *member {
	if !f.works() {
		return nil
	}
	for _, head := range f.line.Heads() {
		serves := func(string) bool { return true }
		switch {
		case f.line.GroupFull(head):
			serves = func(group string) bool { return group == head }
		case !f.line.Full():
			return nil
		}
		if asked, coming := f.line.giveWay(serves, now); asked != nil || coming {
			return asked
		}
	}
	return nil
}

// shutdown returns how far the run has got with its end.
func (f *fleet) shutdown() agent.Shutdown {
	switch {
	case f.endNow:
		return agent.EndsNow
	case f.stage == stopping:
		return agent.EndsTurns
	}
	return agent.Runs
}

// wants reports whether a session would be started for a member that has something
// queued.
func (f *fleet) wants(m *member, now time.Time) bool {
	return f.works() && !m.gone && m.Wants(now)
}

// touch says that something has happened to a member.
func (f *fleet) touch(m *member) {
	if !m.touched {
		m.touched = true
		f.touched = append(f.touched, m)
	}
}
