package firing

import (
	"container/heap"
	"slices"
	"time"

	"heartbeat/config"
)

// Fire is a scheduled fire in the future.
type Fire struct {
	Agent   string    `json:"agent"`
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`       // in the trigger's time zone
	Zone    string    `json:"timezone"` // its name; Local is the machine's
	Urgent  bool      `json:"urgent"`   // its prompt goes before those that are not
}

// Next returns the next fire of each schedule after a time, in order of time.
func Next(agents []*config.Agent, after time.Time) []Fire {
	pending := firsts(agents, after)
	slices.SortStableFunc(pending, func(x, y pendingFire) int { return x.At.Compare(y.At) })
	fires := make([]Fire, len(pending))
	for i, p := range pending {
		fires[i] = p.Fire
	}
	return fires
}

// Upcoming returns the first n fires of agents' schedules after a time, in order of
// time.
func Upcoming(agents []*config.Agent, after time.Time, n int) []Fire {
	h := firsts(agents, after)
	heap.Init(&h)
	fires := []Fire{}
	for len(h) > 0 && len(fires) < n {
		f := &h[0]
		fires = append(fires, f.Fire)
		if f.At = NextFire(f.agent, f.trigger, f.At); f.At.IsZero() {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return fires
}

// firsts returns the next fire of each schedule.
func firsts(agents []*config.Agent, after time.Time) (all fireHeap) {
	for _, a := range agents {
		for i := range a.Triggers {
			if t := &a.Triggers[i]; t.Cron != nil {
				if at := NextFire(a, t, after); !at.IsZero() {
					all = append(all, pendingFire{Fire{a.Name, t.Name, at, at.Location().String(), t.Urgent}, a, t})
				}
			}
		}
	}
	return all
}

type pendingFire struct {
	Fire
	agent   *config.Agent
	trigger *config.Trigger
}

// fireHeap is a container/heap with the next fire first.
type fireHeap []pendingFire

func (h fireHeap) Len() int           { return len(h) }
func (h fireHeap) Less(i, j int) bool { return h[i].At.Before(h[j].At) }
func (h fireHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *fireHeap) Push(x any)        { *h = append(*h, x.(pendingFire)) }
func (h *fireHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// NextFire returns a cron trigger's next fire after a time, with its jitter.
func NextFire(a *config.Agent, t *config.Trigger, after time.Time) time.Time {
	late := a.Delay(t)
	at := t.Cron.Schedule.Next(after.Add(-late))
	if at.IsZero() {
		return at
	}
	return at.Add(late)
}
