package usage

import "time"

// Purse is what an agent spends from: its own, its group's, or the fleet's, which is the
// zero value.
type Purse struct{ agent, group string }

// Purses returns those that an agent spends from, its own first; group is "" for an agent
// without one.
func Purses(agent, group string) []Purse {
	all := []Purse{{agent: agent}}
	if group != "" {
		all = append(all, Purse{group: group})
	}
	return append(all, Purse{})
}

// Own reports whether it is an agent's own.
func (p Purse) Own() bool { return p.agent != "" }

// Group returns the group whose it is, or "".
func (p Purse) Group() string { return p.group }

// Name is what its budget is called.
func (p Purse) Name() string {
	switch {
	case p.agent != "":
		return "its budget"
	case p.group != "":
		return "the budget of group " + p.group
	}
	return "the fleet's budget"
}

// Meters have what was spent lately from each purse.
type Meters map[Purse]*Meter

// Add adds what an agent has spent at a time, as one of a group or, with "", of none. See
// Meter.Add.
func (m Meters) Add(agent, group string, sum Sum, at, now time.Time) {
	for _, p := range Purses(agent, group) {
		if m[p] == nil {
			m[p] = &Meter{}
		}
		m[p].Add(sum, at, now)
	}
}

// Rename has an agent go on with what it has spent under another name.
func (m Meters) Rename(from, to string) {
	if own := m[Purse{agent: from}]; own != nil {
		m[Purse{agent: to}] = own
	}
}
