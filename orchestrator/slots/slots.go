// Package slots keeps who has a session slot and who waits for one, overall and by
// group. It knows nothing else about those that it serves, nor the time.
package slots

import (
	"cmp"
	"container/list"
	"iter"
	"maps"
	"slices"
)

// Slots are the slots of a fleet. The cost of each method grows with the number of
// groups that have somebody waiting, or of sessions, not with how many wait.
type Slots[A comparable] struct {
	most   int            // sessions at once
	limits map[string]int // of the groups; a group that is not in it has none

	taken   map[A]string          // :: who has a slot → the group that it counts for
	inGroup map[string]int        // :: group → its slots that are taken
	waiting map[string]*list.List // :: group → its places, the longest first
	places  map[A]*list.Element   // of those that are waiting
	arrived uint64
}

// place is a place in the line for a slot.
type place[A comparable] struct {
	who    A
	group  string
	number uint64 // the lowest has waited longest
}

// New returns slots for this many sessions at once, and this many of each group. A
// group without a limit has only the overall one.
func New[A comparable](most int, limits map[string]int) *Slots[A] {
	return &Slots[A]{
		most: most, limits: limits, taken: map[A]string{}, inGroup: map[string]int{},
		waiting: map[string]*list.List{}, places: map[A]*list.Element{},
	}
}

// Limit sets how many sessions there may be. Whoever has a slot keeps it.
func (s *Slots[A]) Limit(most int, limits map[string]int) { s.most, s.limits = most, limits }

// Wait puts somebody into the line of its group; if it has a slot, it gives it
// back. If it is in the line already, it keeps its place.
func (s *Slots[A]) Wait(who A, group string) {
	if s.places[who] != nil {
		return
	}
	s.Leave(who)
	s.arrived++
	s.join(&place[A]{who, group, s.arrived})
}

// Take gives somebody a slot, which counts for its group until Leave. Whoever has
// one keeps it.
func (s *Slots[A]) Take(who A, group string) {
	if _, has := s.taken[who]; has {
		return
	}
	s.leaveLine(who)
	s.taken[who] = group
	s.inGroup[group]++
}

// Leave takes somebody out of the line, and gives its slot back.
func (s *Slots[A]) Leave(who A) {
	s.leaveLine(who)
	if group, has := s.taken[who]; has {
		delete(s.taken, who)
		s.inGroup[group]--
	}
}

// Regroup changes the group of somebody: in the line it keeps its time, and a slot
// still counts for the group that it was taken for.
func (s *Slots[A]) Regroup(who A, group string) {
	e := s.places[who]
	if e == nil || e.Value.(*place[A]).group == group {
		return
	}
	p := e.Value.(*place[A])
	s.leaveLine(who)
	s.join(&place[A]{who, group, p.number})
}

// join puts somebody into the line of its group, behind those that have waited
// longer.
func (s *Slots[A]) join(p *place[A]) {
	line := s.waiting[p.group]
	if line == nil {
		line = list.New()
		s.waiting[p.group] = line
	}
	before := line.Back()
	for before != nil && before.Value.(*place[A]).number > p.number {
		before = before.Prev()
	}
	if before == nil {
		s.places[p.who] = line.PushFront(p)
		return
	}
	s.places[p.who] = line.InsertAfter(p, before)
}

func (s *Slots[A]) leaveLine(who A) {
	e := s.places[who]
	if e == nil {
		return
	}
	delete(s.places, who)
	group := e.Value.(*place[A]).group
	line := s.waiting[group]
	if line.Remove(e); line.Len() == 0 {
		delete(s.waiting, group)
	}
}

// Full reports whether all slots are taken.
func (s *Slots[A]) Full() bool { return len(s.taken) >= s.most }

// GroupFull reports whether a group has all the sessions that it may have.
func (s *Slots[A]) GroupFull(group string) bool {
	limit, ok := s.limits[group]
	return ok && s.inGroup[group] >= limit
}

// Taken returns who has a slot, and for which group, in no particular order.
func (s *Slots[A]) Taken() iter.Seq2[A, string] { return maps.All(s.taken) }

// Count returns how many slots are taken.
func (s *Slots[A]) Count() int { return len(s.taken) }

// First returns who has waited longest among those that a free slot would serve;
// false if there is nobody.
func (s *Slots[A]) First() (who A, ok bool) {
	var first *place[A]
	for group, line := range s.waiting {
		if p := line.Front().Value.(*place[A]); !s.GroupFull(group) && (first == nil || p.number < first.number) {
			first = p
		}
	}
	if first == nil {
		return who, false
	}
	return first.who, true
}

// Heads returns the groups that have somebody waiting, ordered by the one that has
// waited longest.
func (s *Slots[A]) Heads() []string {
	heads := make([]*place[A], 0, len(s.waiting))
	for _, line := range s.waiting {
		heads = append(heads, line.Front().Value.(*place[A]))
	}
	slices.SortFunc(heads, byNumber)
	groups := make([]string, len(heads))
	for i, p := range heads {
		groups[i] = p.group
	}
	return groups
}

// Line returns all that wait, the longest first.
func (s *Slots[A]) Line() []A {
	all := make([]*place[A], 0, len(s.places))
	for e := range maps.Values(s.places) {
		all = append(all, e.Value.(*place[A]))
	}
	slices.SortFunc(all, byNumber)
	line := make([]A, len(all))
	for i, p := range all {
		line[i] = p.who
	}
	return line
}

func byNumber[A comparable](a, b *place[A]) int { return cmp.Compare(a.number, b.number) }
