package orchestrator

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/sources"
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

// TestAPausedTriggerDoesNotFire: only it, in one run and over a restart, until somebody
// resumes it or its end; what fell due meanwhile is not made up for. By its name a person
// fires it.
func TestAPausedTriggerDoesNotFire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length time.Duration
		again  bool // a restart meanwhile
		ended  bool // no run lives at its end
	}{
		"until it is resumed":                 {},
		"until it is resumed, over a restart": {again: true},
		"for a time":                          {length: 3*time.Hour + time.Minute},
		"for a time, over a restart":          {length: 3*time.Hour + time.Minute, again: true},
		"for a time that ends without a run":  {length: 3*time.Hour + time.Minute, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
				every := cron(t, "every", "0 * * * *")
				every.Cron.Missed = sources.MissedAll
				r.agent("a").Triggers = []config.Trigger{every, cron(t, "other", "30 * * * *")}
				fires := func(trigger string) (n int) {
					for _, e := range r.journal(journal.Fired) {
						if strings.HasPrefix(e.Trigger, "a/"+trigger+"@") {
							n++
						}
					}
					return n
				}
				stop, begin := r.run(), time.Now()
				states, err := r.s.PauseTrigger("", c.length, "a", "every")
				if err != nil || len(states[0].PausedTriggers) != 1 || states[0].PausedTriggers[0].Trigger != "every" {
					t.Fatalf("%+v, %v", states, err)
				}
				if c.again || c.ended {
					r.sleep(time.Hour)
					stop()
					if c.ended {
						r.sleep(2*time.Hour + 2*time.Minute)
					}
					stop = r.run()
				}
				r.sleep(3*time.Hour + 10*time.Minute - time.Since(begin))
				if n := fires("every"); n != 0 && !c.ended {
					t.Errorf("it fired %d times while it was paused", n)
				}
				if fires("other") < 1 {
					t.Error("another trigger of the agent does not fire")
				}
				if c.length == 0 {
					if f, err := r.s.Trigger(t.Context(), "a"); err != nil || f[0].Skipped == "" || f[1].Queued != 1 {
						t.Errorf("all are fired by hand: %+v, %v", f, err)
					}
					if f, err := r.s.Trigger(t.Context(), "a", "every"); err != nil || f[0].Queued != 1 {
						t.Errorf("it is fired by hand: %+v, %v", f, err)
					}
					if states, err = r.s.ResumeTrigger("a", "every"); err != nil || len(states[0].PausedTriggers) != 0 {
						t.Errorf("%+v, %v", states, err)
					}
				}
				before := len(r.journal(journal.Fired))
				r.sleep(2 * time.Hour)
				if n := len(r.journal(journal.Fired)) - before; n != 4 || len(r.state("a").PausedTriggers) != 0 {
					t.Errorf("after its pause %d fires of two triggers in two hours, %+v", n, r.state("a"))
				}
				if n := len(r.journal(journal.Resumed)); n != 1 {
					t.Errorf("its end is told %d times", n)
				}
				stop()
			})
		})
	}
}

// TestAPauseOfATriggerIsKept as those of agents are: for the next run, and no session
// shortens one. One that is not paused is not begun anew by a resume, and one that is not
// there is named.
func TestAPauseOfATriggerIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.agent("a").Triggers = []config.Trigger{cron(t, "every", "0 * * * *")}
		state := filepath.Join(r.dir, "state")
		r.mkdir(state)
		if _, err := PauseTriggerStopped(r.fleet, state, 0, "a", "every"); err != nil {
			t.Fatal(err)
		}
		if all := memory.PausedTriggersOf(state, r.fleet.Agents); len(all["a"]) != 1 || len(all) != 1 {
			t.Errorf("on disk: %+v", all)
		}
		stop := r.run()
		if _, err := r.s.PauseTrigger("b", time.Minute, "a", "every"); err != nil {
			t.Fatal(err)
		}
		if p := r.state("a").PausedTriggers; len(p) != 1 || !p[0].Until.IsZero() || p[0].By != "" {
			t.Errorf("a session has shortened it: %+v", p)
		}
		_, err := r.s.PauseTrigger("", 0, "a", "none")
		if unknown, is := errors.AsType[*firing.UnknownTriggerError](err); !is || !slices.Equal(unknown.Names, []string{"every"}) {
			t.Errorf("one that is not there: %v", err)
		}
		stop()
		if _, err := ResumeTriggerStopped(r.fleet, state, "a", "every"); err != nil {
			t.Fatal(err)
		}
		if all := memory.PausedTriggersOf(state, r.fleet.Agents); len(all) != 0 {
			t.Errorf("on disk after the resume: %+v", all)
		}
	})
}
