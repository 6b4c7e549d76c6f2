package hook

import "time"

// Clock is a moment as two clocks tell it: the wall's, which people and time
// servers set, and the system's since its start, which only counts.
type Clock struct {
	Wall   time.Time     `json:"wall"`
	Uptime time.Duration `json:"uptime"` // nanoseconds, without time asleep (CLOCK_MONOTONIC)
	Boot   string        `json:"boot"`   // of the start that Uptime counts from
}

// readClock reads both. Where the system does not tell, it is zero.
func readClock() Clock {
	up, boot := uptime()
	if boot == "" {
		return Clock{}
	}
	return Clock{Wall: time.Now(), Uptime: up, Boot: boot}
}

// stepped is how far the wall clock must be off to have been set. Less is what
// reading two clocks takes, or a slow correction.
const stepped = time.Second

// carry brings a time that was noted by the old clock into the present one, so
// that what has passed since is what the uptime says, however the wall clock
// was set meanwhile, and keeps so in this process.
func (now Clock) carry(t time.Time, old Clock) time.Time {
	if t.IsZero() {
		return t
	}
	since := t.Sub(now.Wall.Round(0))
	elapsed := now.Uptime - old.Uptime
	if step := now.Wall.Round(0).Sub(old.Wall) - elapsed; step.Abs() >= stepped {
		since = t.Sub(old.Wall) - elapsed
	}
	return now.Wall.Add(since)
}

// carry brings the record's times into the present clock.
func (r *Record) carry(now Clock) {
	if now.Boot == "" || now.Boot != r.Clock.Boot {
		return
	}
	for _, t := range r.times() {
		*t = now.carry(*t, r.Clock)
	}
	r.Clock = now
}

// times are all those of the record.
func (r *Record) times() []*time.Time {
	all := []*time.Time{
		&r.StartedAt, &r.BoundAt, &r.Since, &r.LastEventAt, &r.BackgroundSince, &r.TypedAt, &r.EndedAt,
	}
	if r.Work != nil {
		all = append(all, &r.Work.Since)
	}
	if r.Ruling != nil {
		all = append(all, &r.Ruling.At)
	}
	return all
}
