package hook

import (
	"fmt"
	"testing"
	"time"
)

// TestNoStopHookWaitsLongerThanItIsGiven: a session that drains waited for a
// person who typed, under a time-out of a minute. It walks the ways to wait:
// every policy, with nobody there, somebody who only looks, and somebody who
// never stops typing.
func TestNoStopHookWaitsLongerThanItIsGiven(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		for company, arrive := range companies() {
			t.Run(fmt.Sprintf("%s %s %s %s", p.Mode, p.OnIdle, p.IdleInterval, company), func(t *testing.T) {
				t.Parallel()
				waited, next := wait(p, arrive)
				if given := p.StopTimeout(); waited > given-margin || given%time.Second != 0 {
					t.Errorf("waits for %s, and is given %s", waited, given)
				}
				if next == await || next == desert {
					t.Errorf("step %d at the end", next)
				}
				if p.Mode == Persist && company == "nobody" && waited < p.IdleInterval {
					t.Errorf("waits for %s only", waited)
				}
				if company == "typed once" && waited < TypingPause {
					t.Errorf("waits for %s only", waited)
				}
			})
		}
	}
}

// TestAStopHookOutlastsEachCheck, in every mode, also where a person types meanwhile.
func TestAStopHookOutlastsEachCheck(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		for _, p.CheckTimeout = range []time.Duration{0, 15 * time.Minute, 24 * time.Hour, 24*time.Hour + 5*time.Minute} {
			if given := p.StopTimeout(); given < p.CheckTimeout+max(p.TypingPause, TypingPause)+margin {
				t.Errorf("%+v: the hook is given %s", p, given)
			}
		}
	}
}

func policies() []Policy {
	var all []Policy
	for _, mode := range []Mode{Drain, Persist} {
		for _, idle := range []time.Duration{0, time.Second + time.Nanosecond, 30 * time.Minute, 48 * time.Hour} {
			for _, onIdle := range []OnIdle{IdleTick, IdleRelease} {
				for _, pause := range []time.Duration{0, time.Hour} {
					all = append(all, Policy{Mode: mode, IdleInterval: idle, OnIdle: onIdle, TypingPause: pause})
				}
			}
		}
	}
	return all
}

// companies change the record before each look.
func companies() map[string]func(r *Record, now time.Time) {
	return map[string]func(*Record, time.Time){
		"nobody": func(*Record, time.Time) {},
		"looks":  func(r *Record, _ time.Time) { r.Attached = 1 },
		"types":  func(r *Record, now time.Time) { r.Attached, r.TypedAt = 1, now },
		"typed once": func(r *Record, now time.Time) {
			if r.TypedAt.IsZero() {
				r.TypedAt = now
			}
		},
		"typed and looks": func(r *Record, now time.Time) {
			r.Attached = 1
			if now.Sub(noon) < time.Hour {
				r.TypedAt = now
			}
		},
	}
}

// wait is a Stop hook's waiting with nothing queued, at a clock of its own. It
// has needed the margin already before it begins to wait.
func wait(p Policy, company func(*Record, time.Time)) (time.Duration, step) {
	r := &Record{Terms: Terms{Policy: p}, Phase: Turn, Since: noon}
	v := vigil{me: Process{PID: 7, Start: 70}, began: noon}
	now := noon.Add(margin)
	company(r, now)
	next := proceed(r, false, now)
	r.Phase, r.Waiter, v.idleAt = Waiting, v.me, now.Add(p.IdleInterval)
	for next == await {
		now = nextLook(r, v, now)
		company(r, now)
		next = awake(r, v, false, now)
	}
	return now.Sub(noon), next
}
