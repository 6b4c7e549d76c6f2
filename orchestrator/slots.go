package orchestrator

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
)

// slots are who has a session slot and who waits for one, in all and by
// group. Each method costs as much as there are groups with agents that wait,
// or sessions, however many agents wait.
type slots struct {
	most   int            // sessions at once
	limits map[string]int // of the groups; one that is not in it has none

	active  map[*agent]string        // :: agent → the group that its session counts for
	taken   map[string]int           // :: group → its sessions
	waiting map[string]*list.List    // :: group → its places, the longest first
	places  map[*agent]*list.Element // of those that wait
	arrived uint64

	lastStart time.Time
	timer     *time.Timer // looks again at lookAt, when a start may follow
	lookAt    time.Time
}

// place is where an agent stands in the line for a slot.
type place struct {
	agent  *agent
	group  string
	number uint64 // the least has waited longest
}

func newSlots(f *config.Fleet) slots {
	l := slots{
		active: map[*agent]string{}, taken: map[string]int{},
		waiting: map[string]*list.List{}, places: map[*agent]*list.Element{},
	}
	l.limit(f)
	return l
}

// limit sets how many sessions there may be.
func (l *slots) limit(f *config.Fleet) { l.most, l.limits = f.MaxSessions, f.Groups }

// moved follows an agent's change of state.
func (l *slots) moved(a *agent, from, to State) {
	if from == Waiting {
		l.leave(a)
	}
	if to == Waiting {
		l.arrived++
		l.join(&place{a, a.cfg.Group, l.arrived})
	}
	group, has := l.active[a]
	switch needs := holdsSlot(to); {
	case needs && !has:
		l.active[a] = a.cfg.Group
		l.taken[a.cfg.Group]++
	case !needs && has:
		delete(l.active, a)
		l.taken[group]--
	}
}

// regrouped follows an agent's change of group: who waits keeps its place in
// time.
func (l *slots) regrouped(a *agent) {
	e := l.places[a]
	if e == nil || e.Value.(*place).group == a.cfg.Group {
		return
	}
	p := e.Value.(*place)
	l.leave(a)
	l.join(&place{a, a.cfg.Group, p.number})
}

// join puts an agent into the line of its group, behind those who have waited
// longer.
func (l *slots) join(p *place) {
	line := l.waiting[p.group]
	if line == nil {
		line = list.New()
		l.waiting[p.group] = line
	}
	before := line.Back()
	for before != nil && before.Value.(*place).number > p.number {
		before = before.Prev()
	}
	if before == nil {
		l.places[p.agent] = line.PushFront(p)
		return
	}
	l.places[p.agent] = line.InsertAfter(p, before)
}

func (l *slots) leave(a *agent) {
	e := l.places[a]
	if e == nil {
		return
	}
	delete(l.places, a)
	group := e.Value.(*place).group
	line := l.waiting[group]
	if line.Remove(e); line.Len() == 0 {
		delete(l.waiting, group)
	}
}

// full reports whether there are all the sessions that there may be.
func (l *slots) full() bool { return len(l.active) >= l.most }

// groupFull reports whether a group has all the sessions that it may have.
func (l *slots) groupFull(group string) bool {
	limit, ok := l.limits[group]
	return ok && l.taken[group] >= limit
}

// first returns the agent that has waited longest of those whom a free slot
// would serve, or nil.
func (l *slots) first() *agent {
	var first *place
	for group, line := range l.waiting {
		if p := line.Front().Value.(*place); !l.groupFull(group) && (first == nil || p.number < first.number) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	return first.agent
}

// heads returns who has waited longest of each group, the longest first.
func (l *slots) heads() []*place {
	heads := make([]*place, 0, len(l.waiting))
	for _, line := range l.waiting {
		heads = append(heads, line.Front().Value.(*place))
	}
	slices.SortFunc(heads, byNumber)
	return heads
}

// everyone returns all who wait, the longest first.
func (l *slots) everyone() []*agent {
	all := make([]*place, 0, len(l.places))
	for e := range maps.Values(l.places) {
		all = append(all, e.Value.(*place))
	}
	slices.SortFunc(all, byNumber)
	agents := make([]*agent, len(all))
	for i, p := range all {
		agents[i] = p.agent
	}
	return agents
}

func byNumber(a, b *place) int { return cmp.Compare(a.number, b.number) }

// holdsSlot reports whether a session lives, or is about to, in a state.
func holdsSlot(s State) bool { return s == Starting || s == Running || s == Ending }

// starting counts the sessions that no hook has spoken from yet.
func (l *slots) starting() int {
	n := 0
	for a := range l.active {
		if a.state == Starting || a.state == Running && a.last.Phase == hook.Starting {
			n++
		}
	}
	return n
}
