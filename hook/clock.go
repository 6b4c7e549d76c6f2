package hook

import "time"

// Clock is one moment on two clocks: the wall clock, which people and time servers
// set, and the system's clock since boot, which only counts up.
type Clock struct {
	Wall   time.Time     `json:"wall"`
	Uptime time.Duration `json:"uptime"` // nanoseconds, without time asleep (CLOCK_MONOTONIC)
	Boot   string        `json:"boot"`   // of the start that Uptime counts from
}

// readClock reads both clocks. Where the system has no uptime, it is zero.
func readClock() Clock {
	up, boot := uptime()
	if boot == "" {
		return Clock{}
	}
	return Clock{Wall: time.Now(), Uptime: up, Boot: boot}
}

// Boot is the id of the machine's present start; "": the system does not tell.
func Boot() string {
	_, boot := uptime()
	return boot
}

// stepped is how far the wall clock must be off to count as set. Smaller
// differences come from reading two clocks, or from a slow correction.
const stepped = time.Second

// carry converts a time that was noted with the old clock to the present one, so
// that the uptime decides how much time has passed, however the wall clock was set
// since. The result also stays right for the life of this process.
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

// times returns pointers to all times of the record.
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
