package firing

import (
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
)

// pace bounds how often a trigger fires. What it counts outlasts a restart.
type pace struct {
	rate config.Rate
	kept *memory.Trigger
	save func()
	mu   sync.Mutex
}

// take counts a fire at a time, unless that would be one too many: then free is when
// there is room for it. undo takes a fire back that did not happen.
func (p *pace) take(now time.Time) (undo func(), free time.Time) {
	if p == nil || p.rate == (config.Rate{}) {
		return func() {}, time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fires := within(p.kept.Recent(), p.rate.Within, now)
	if len(fires) >= p.rate.Fires {
		return nil, fires[len(fires)-p.rate.Fires].Add(p.rate.Within)
	}
	p.keep(append(fires, now))
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		fires := p.kept.Recent()
		if i := slices.IndexFunc(fires, now.Equal); i >= 0 {
			p.keep(slices.Delete(fires, i, i+1))
		}
	}, time.Time{}
}

func (p *pace) keep(fires []time.Time) {
	p.kept.NoteRecent(fires)
	p.save()
}

// within returns the fires of the last stretch of time. One from the future, which a
// wrong clock made, does not count.
func within(fires []time.Time, length time.Duration, now time.Time) []time.Time {
	return slices.DeleteFunc(fires, func(at time.Time) bool { return at.After(now) || now.Sub(at) >= length })
}
