package orchestrator

import (
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
)

// TestAPauseThatEndsByItself: for one agent and for all, in one run and over a
// restart, also with a session in its turn when it begins.
func TestAPauseThatEndsByItself(t *testing.T) {
	t.Parallel()
	for name, agents := range map[string][]string{"an agent": {"a"}, "the fleet": nil} {
		for _, again := range []bool{false, true} {
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				r.send("a", 2)
				stop := r.run()
				r.sleep(boot + entry/2)
				begin := time.Now()
				states, err := r.s.PauseBy("", 10*time.Minute, agents...)
				if err != nil || !states[0].PausedUntil.Equal(begin.Add(10*time.Minute)) {
					t.Fatalf("%s: %+v, %v", name, states, err)
				}
				r.sleep(time.Minute)
				done := 1 // in this run
				if again {
					stop()
					done = 0
					stop = r.run()
				}
				r.sleep(8 * time.Minute)
				r.want("a", Held)
				if a := r.state("a"); !a.Until.Equal(begin.Add(10*time.Minute)) || a.Acknowledged != done {
					t.Errorf("%s: %+v", name, a)
				}
				r.sleep(2 * time.Minute)
				r.want("a", Idle)
				r.want("b", Idle)
				if a := r.state("a"); a.Acknowledged != done+1 || !a.Paused.IsZero() || !a.PausedUntil.IsZero() {
					t.Errorf("%s: after its end: %+v", name, a)
				}
				over := r.journal(journal.Resumed)
				if len(over) != len(states) || over[0].Reason != "its pause is over" {
					t.Errorf("%s: the journal says %+v", name, over)
				}
				stop()
			})
		}
	}
}

// TestAPauseIsReplaced by the next one of a person; a session shortens none.
func TestAPauseIsReplaced(t *testing.T) {
	t.Parallel()
	type ask struct {
		by  string
		For time.Duration
	}
	const short, long = time.Minute, time.Hour
	for name, c := range map[string]struct {
		asks []ask
		want time.Duration // 0: it has no end
	}{
		"a longer one":                       {[]ask{{"", short}, {"", long}}, long},
		"a shorter one":                      {[]ask{{"", long}, {"", short}}, short},
		"one without an end":                 {[]ask{{"", short}, {"", 0}}, 0},
		"one with an end":                    {[]ask{{"", 0}, {"", short}}, short},
		"a session's shorter one":            {[]ask{{"", long}, {"b", short}}, long},
		"a session's longer one":             {[]ask{{"", short}, {"b", long}}, long},
		"a session's, of one without an end": {[]ask{{"", 0}, {"b", short}}, 0},
		"a session's without an end":         {[]ask{{"", short}, {"b", 0}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				stop := r.run()
				defer func() { stop() }() // the second run's
				begin := time.Now()
				for _, q := range c.asks {
					if _, err := r.s.PauseBy(q.by, q.For, "a"); err != nil {
						t.Fatal(err)
					}
				}
				want := time.Time{}
				if c.want > 0 {
					want = begin.Add(c.want)
				}
				if a := r.state("a"); !a.PausedUntil.Equal(want) {
					t.Errorf("until %v, want %v", a.PausedUntil, want)
				}
				stop()
				stop = r.run()
				if a := r.state("a"); !a.PausedUntil.Equal(want) {
					t.Errorf("after a restart: until %v, want %v", a.PausedUntil, want)
				}
			})
		})
	}
}
