package slots

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// dayEvent is an agent's next change in a day that is played without sessions.
type dayEvent struct {
	at   time.Duration
	who  int
	ends bool // of its session; else it has work
}

// dayHeap is a container/heap, the next event first.
type dayHeap []dayEvent

func (h dayHeap) Len() int           { return len(h) }
func (h dayHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dayHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dayHeap) Push(x any)        { *h = append(*h, x.(dayEvent)) }
func (h *dayHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// waits are how often everybody had a slot, and how long one waited at most.
type waits struct {
	starts  map[int]int
	longest map[string]time.Duration // by group
}

// aDayOf plays a day of all who have work at its start and again some hours
// after each session. Sessions last between 10 and 30 seconds.
func aDayOf(s *Slots[int], groups []string, again time.Duration, rnd *rand.Rand) waits {
	w := waits{starts: map[int]int{}, longest: map[string]time.Duration{}}
	since := map[int]time.Duration{}
	var events dayHeap
	for who := range groups {
		heap.Push(&events, dayEvent{who: who})
	}
	for len(events) > 0 && events[0].at < 24*time.Hour {
		e := heap.Pop(&events).(dayEvent)
		if e.ends {
			s.Leave(e.who)
			heap.Push(&events, dayEvent{at: e.at + time.Duration(rnd.ExpFloat64()*float64(again)), who: e.who})
		} else {
			s.Wait(e.who, groups[e.who])
			since[e.who] = e.at
		}
		for who, ok := s.First(); ok && !s.Full(); who, ok = s.First() {
			s.Take(who, groups[who])
			w.starts[who]++
			w.longest[groups[who]] = max(w.longest[groups[who]], e.at-since[who])
			lasts := 10*time.Second + time.Duration(rnd.Int64N(int64(20*time.Second)))
			heap.Push(&events, dayEvent{at: e.at + lasts, who: who, ends: true})
		}
	}
	return w
}

// TestNobodyStarvesInADay plays a day of 10,000 with 50 slots, a tenth of them in
// a group that has two and more work than those can do. Nobody waits longer than
// those who came before take, and the crowded group is in nobody else's way.
func TestNobodyStarvesInADay(t *testing.T) {
	t.Parallel()
	const n, most, crowded, few = 10_000, 50, 1_000, 2
	s := New[int](most, map[string]int{"crowded": few})
	groups := make([]string, n)
	for i := range n {
		if i%(n/crowded) == 0 {
			groups[i] = "crowded"
		}
	}
	w := aDayOf(s, groups, 3*time.Hour, rand.New(rand.NewPCG(3, 4)))
	const lasts = 20 * time.Second // on average
	for group, bound := range map[string]time.Duration{
		"":        (n - crowded) / (most - few) * lasts * 11 / 10,
		"crowded": crowded / few * lasts * 11 / 10,
	} {
		if got := w.longest[group]; got == 0 || got > bound {
			t.Errorf("somebody of group %q waited %v, want at most %v", group, got, bound)
		}
	}
	for who := range groups {
		if w.starts[who] == 0 {
			t.Errorf("%d got no slot in a day", who)
		}
	}
}
