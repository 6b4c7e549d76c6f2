package slots

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is what slots are, with every answer found by looking at all.
type model struct {
	most   int
	limits map[string]int
	groups map[int]string // :: who → the group that it is of now
	taken  map[int]string
	line   []int
}

func (m *model) leave(who int) {
	delete(m.taken, who)
	m.line = slices.DeleteFunc(m.line, func(w int) bool { return w == who })
}

func (m *model) inGroup(group string) (n int) {
	for _, g := range m.taken {
		if g == group {
			n++
		}
	}
	return n
}

func (m *model) groupFull(group string) bool {
	limit, ok := m.limits[group]
	return ok && m.inGroup(group) >= limit
}

// TestSlotsAgreeWithTheirDescription drives slots with random moves and
// compares every answer with one that looks at all.
func TestSlotsAgreeWithTheirDescription(t *testing.T) {
	t.Parallel()
	groups := []string{"", "one", "two", "free"}
	m := &model{most: 5, limits: map[string]int{"one": 1, "two": 2}, groups: map[int]string{}, taken: map[int]string{}}
	s := New[int](m.most, m.limits)
	for who := range 40 {
		m.groups[who] = groups[who%len(groups)]
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		who := rnd.IntN(40)
		switch rnd.IntN(5) {
		case 0, 1:
			s.Wait(who, m.groups[who])
			if !slices.Contains(m.line, who) {
				m.leave(who)
				m.line = append(m.line, who)
			}
		case 2:
			s.Take(who, m.groups[who])
			if _, has := m.taken[who]; !has {
				m.leave(who)
				m.taken[who] = m.groups[who]
			}
		case 3:
			s.Leave(who)
			m.leave(who)
		case 4:
			m.groups[who] = groups[rnd.IntN(len(groups))]
			s.Regroup(who, m.groups[who])
		}
		m.check(t, s)
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

func (m *model) check(t *testing.T, s *Slots[int]) {
	t.Helper()
	if s.Full() != (len(m.taken) >= m.most) || s.Count() != len(m.taken) {
		t.Errorf("full is %t with %d of %d sessions", s.Full(), len(m.taken), m.most)
	}
	for who, group := range s.Taken() {
		if m.taken[who] != group {
			t.Errorf("%d has a slot of %q, want %q", who, group, m.taken[who])
		}
	}
	first, some := 0, false
	var heads []string
	for _, who := range m.line {
		group := m.groups[who]
		if s.GroupFull(group) != m.groupFull(group) {
			t.Errorf("the group %q has %d sessions; full is %t", group, m.inGroup(group), s.GroupFull(group))
		}
		if !some && !m.groupFull(group) {
			first, some = who, true
		}
		if !slices.Contains(heads, group) {
			heads = append(heads, group)
		}
	}
	if got, ok := s.First(); got != first || ok != some {
		t.Errorf("first is %d, %t, want %d, %t", got, ok, first, some)
	}
	if got := s.Heads(); !slices.Equal(got, heads) {
		t.Errorf("heads are %q, want %q", got, heads)
	}
	if got := s.Line(); !slices.Equal(got, m.line) {
		t.Errorf("the line is %v, want %v", got, m.line)
	}
}

// BenchmarkSlots shows that a move and a look cost the same for 100 who wait and
// for 10,000.
func BenchmarkSlots(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New[int](50, map[string]int{"full": 0})
			for who := range n {
				s.Wait(who, []string{"", "full"}[who%2])
			}
			for b.Loop() {
				who, _ := s.First()
				s.Take(who, "")
				s.Heads()
				s.Leave(who)
				s.Wait(who, "")
			}
		})
	}
}
