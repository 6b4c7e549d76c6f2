package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"heartbeat/config"
)

func newGrouped(name, group string) *agent {
	return newAgent(&config.Agent{Name: name, Group: group})
}

// TestSlotsAgreeWithTheirDescription drives slots with random moves and
// compares every answer with one that looks at all agents.
func TestSlotsAgreeWithTheirDescription(t *testing.T) {
	t.Parallel()
	groups := []string{"", "one", "two", "free"}
	fleet := &config.Fleet{MaxSessions: 5, Groups: map[string]int{"one": 1, "two": 2}}
	l := newSlots(fleet)
	var agents, waiting []*agent
	for i := range 40 {
		agents = append(agents, newGrouped(fmt.Sprint("a", i), groups[i%len(groups)]))
	}
	states := []State{Idle, Waiting, Starting, Running, Ending, BackingOff, Parked, Held}
	rnd := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		a := agents[rnd.IntN(len(agents))]
		switch to := states[rnd.IntN(len(states))]; {
		case step%50 == 0 && !holdsSlot(a.state):
			a.cfg = &config.Agent{Name: a.name, Group: groups[rnd.IntN(len(groups))]}
			l.regrouped(a)
		case to != a.state:
			if a.state == Waiting {
				waiting = slices.DeleteFunc(waiting, func(w *agent) bool { return w == a })
			}
			if to == Waiting {
				waiting = append(waiting, a)
			}
			l.moved(a, a.state, to)
			a.state = to
		}
		checkSlots(t, &l, fleet, agents, waiting)
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

func checkSlots(t *testing.T, l *slots, f *config.Fleet, agents, waiting []*agent) {
	t.Helper()
	taken, all := map[string]int{}, 0
	for _, a := range agents {
		if holdsSlot(a.state) {
			taken[a.cfg.Group]++
			all++
		}
	}
	groupFull := func(group string) bool {
		limit, ok := f.Groups[group]
		return ok && taken[group] >= limit
	}
	if l.full() != (all >= f.MaxSessions) || len(l.active) != all {
		t.Errorf("full is %t with %d of %d sessions", l.full(), all, f.MaxSessions)
	}
	var first *agent
	var heads []string
	for _, a := range waiting {
		if l.groupFull(a.cfg.Group) != groupFull(a.cfg.Group) {
			t.Errorf("the group %q has %d sessions; full is %t", a.cfg.Group, taken[a.cfg.Group], l.groupFull(a.cfg.Group))
		}
		if first == nil && !groupFull(a.cfg.Group) {
			first = a
		}
		if !slices.Contains(heads, a.cfg.Group) {
			heads = append(heads, a.cfg.Group)
		}
	}
	if l.first() != first {
		t.Errorf("first is not who has waited longest of those whom a slot would serve")
	}
	var got []string
	for _, p := range l.heads() {
		got = append(got, p.group)
	}
	if !slices.Equal(got, heads) {
		t.Errorf("heads are of %q, want %q", got, heads)
	}
	if !slices.Equal(l.everyone(), waiting) {
		t.Errorf("%d wait, or in another order than they came; want %d", len(l.everyone()), len(waiting))
	}
}

// BenchmarkSlots shows that a move and a look cost the same for 100 agents that
// wait and for 10,000.
func BenchmarkSlots(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newSlots(&config.Fleet{MaxSessions: 50, Groups: map[string]int{"full": 0}})
			for i := range n {
				a := newGrouped(fmt.Sprint(i), []string{"", "full"}[i%2])
				l.moved(a, Idle, Waiting)
				a.state = Waiting
			}
			for b.Loop() {
				a := l.first()
				l.moved(a, Waiting, Starting)
				l.heads()
				l.moved(a, Starting, Idle)
				l.moved(a, Idle, Waiting)
			}
		})
	}
}
