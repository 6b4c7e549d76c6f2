package firing

import (
	"container/heap"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
)

// Fire is a scheduled fire in the future.
type Fire struct {
	Agent   string    `json:"agent"`
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`       // in the trigger's time zone
	Zone    string    `json:"timezone"` // its name; Local is the machine's
	Urgent  bool      `json:"urgent"`   // its prompt goes before those that are not
}

// Paused are the triggers that are paused, by their agents' names.
type Paused map[string][]memory.PausedTrigger

// Of returns the pause of a trigger; nil: it is not paused.
func (p Paused) Of(agent, trigger string) *memory.PausedTrigger {
	for i := range p[agent] {
		if p[agent][i].Trigger == trigger {
			return &p[agent][i]
		}
	}
	return nil
}

// Next returns the next fire of each schedule after a time, in order of time.
func Next(agents []*config.Agent, paused Paused, after time.Time) []Fire {
	pending := firsts(agents, paused, after)
	slices.SortStableFunc(pending, func(x, y pendingFire) int { return x.At.Compare(y.At) })
	fires := make([]Fire, len(pending))
	for i, p := range pending {
		fires[i] = p.Fire
	}
	return fires
}

// Upcoming returns the first n fires of agents' schedules after a time, in order of
// time.
func Upcoming(agents []*config.Agent, paused Paused, after time.Time, n int) []Fire {
	h := firsts(agents, paused, after)
	heap.Init(&h)
	fires := []Fire{}
	for len(h) > 0 && len(fires) < n {
		f := &h[0]
		fires = append(fires, f.Fire)
		if f.At = NextFire(f.agent, f.trigger, nil, f.At); f.At.IsZero() {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return fires
}

// firsts returns the next fire of each schedule.
func firsts(agents []*config.Agent, paused Paused, after time.Time) (all fireHeap) {
	for _, a := range agents {
		for i := range a.Triggers {
			if t := &a.Triggers[i]; t.Cron != nil {
				if at := NextFire(a, t, paused.Of(a.Name, t.Name), after); !at.IsZero() {
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

// NextFire returns a cron trigger's next fire after a time, with its jitter; zero: there is
// none, or none before somebody ends its pause.
func NextFire(a *config.Agent, t *config.Trigger, paused *memory.PausedTrigger, after time.Time) time.Time {
	switch {
	case paused == nil:
	case paused.Until.IsZero():
		return time.Time{}
	case paused.Until.After(after):
		after = paused.Until
	}
	late := a.Delay(t)
	at := t.Cron.Schedule.Next(after.Add(-late))
	if at.IsZero() {
		return at
	}
	return at.Add(late)
}
