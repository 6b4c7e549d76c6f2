package orchestrator

import (
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
)

// daily fires each day at an hour of Rome, one hour ahead of the bubble's
// clock, and makes up for what was missed.
func daily(t *testing.T, name, hour string) config.Trigger {
	t.Helper()
	c := cron(t, name, "0 "+hour+" * * *")
	c.Cron.Missed = sources.MissedOnce
	return c
}

// TestAScheduleCountsFromItsChange walks the ways in which one changes: it fired
// at once for a time that had passed before. What does not change is not lost.
func TestAScheduleCountsFromItsChange(t *testing.T) {
	t.Parallel()
	renamed := func(a *config.Agent) *config.Agent {
		b := *a
		b.Name = "b"
		return &b
	}
	zone := func(t *testing.T, name string) config.Trigger {
		t.Helper()
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		schedule, err := sources.ParseSchedule("0 9 * * *", loc)
		if err != nil {
			t.Fatal(err)
		}
		c := daily(t, "daily", "9")
		c.Cron.Schedule = schedule
		return c
	}
	tests := []struct {
		name   string
		before func(t *testing.T) config.Trigger
		change func(t *testing.T, a *config.Agent) *config.Agent
		// without is true when the agent is away for an hour.
		without bool
		// down is for how long nothing runs over the change; 0: it is a reload.
		down time.Duration
		// at is when the change is made, in hours; fires how many fires there
		// are from then until hour 20.
		at, fires int
	}{
		// At 9 of Rome it is hour 8.
		{name: "an hour that has passed", at: 10, change: func(t *testing.T, a *config.Agent) *config.Agent {
			a.Triggers = []config.Trigger{daily(t, "daily", "10")}
			return a
		}},
		{name: "an hour that has passed, while nothing runs", at: 10, down: time.Hour, change: func(t *testing.T, a *config.Agent) *config.Agent {
			a.Triggers = []config.Trigger{daily(t, "daily", "10")}
			return a
		}},
		{name: "a later hour that is to come", at: 10, fires: 1, change: func(t *testing.T, a *config.Agent) *config.Agent {
			a.Triggers = []config.Trigger{daily(t, "daily", "15")}
			return a
		}},
		{name: "an hour that has passed, another name", at: 10, change: func(t *testing.T, a *config.Agent) *config.Agent {
			a.Triggers = []config.Trigger{daily(t, "other", "10")}
			return a
		}},
		{
			name: "another zone", at: 10, // 9 of Athens is hour 7
			before: func(t *testing.T) config.Trigger { return zone(t, "America/New_York") }, // hour 14
			change: func(t *testing.T, a *config.Agent) *config.Agent {
				a.Triggers = []config.Trigger{zone(t, "Europe/Athens")}
				return a
			},
		},
		{name: "a trigger that comes again", at: 7, without: true, change: func(_ *testing.T, a *config.Agent) *config.Agent { return a }},
		{name: "nothing", at: 7, down: 3 * time.Hour, fires: 1, change: func(_ *testing.T, a *config.Agent) *config.Agent { return a }},
		{name: "the prompt", at: 7, down: 3 * time.Hour, fires: 1, change: func(t *testing.T, a *config.Agent) *config.Agent {
			c := daily(t, "daily", "9")
			c.Cron.Prompt = "y"
			a.Triggers = []config.Trigger{c}
			return a
		}},
		{name: "its name", at: 7, down: 3 * time.Hour, fires: 1, change: func(t *testing.T, a *config.Agent) *config.Agent {
			a.Triggers = []config.Trigger{daily(t, "other", "9")}
			return a
		}},
		{name: "the agent's name", at: 7, down: 3 * time.Hour, fires: 1, change: func(_ *testing.T, a *config.Agent) *config.Agent { return renamed(a) }},
		{name: "the agent's name, by a reload", at: 7, fires: 1, change: func(_ *testing.T, a *config.Agent) *config.Agent { return renamed(a) }},
		{name: "the agent's name after a fire", at: 9, fires: 0, change: func(_ *testing.T, a *config.Agent) *config.Agent { return renamed(a) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				before := daily(t, "daily", "9")
				if tt.before != nil {
					before = tt.before(t)
				}
				with := func() *config.Agent {
					a := r.declare("a")
					a.Triggers = []config.Trigger{before}
					return a
				}
				r.fleet.Agents = []*config.Agent{with()}
				stop := r.run()
				r.sleep(time.Duration(tt.at) * time.Hour)
				reload := func(agents ...*config.Agent) {
					t.Helper()
					if _, err := r.s.Reload(r.with(agents...)); err != nil {
						t.Fatal(err)
					}
				}
				fired := len(r.journal("fired"))
				switch {
				case tt.down > 0:
					stop()
					r.sleep(tt.down)
					r.fleet = r.with(tt.change(t, with()))
					stop = r.run()
				case tt.without:
					reload(r.declare("a"))
					r.sleep(2 * time.Hour)
					reload(tt.change(t, with()))
				default:
					reload(tt.change(t, with()))
				}
				r.sleep(time.Duration(20-tt.at) * time.Hour)
				if n := len(r.journal("fired")) - fired; n != tt.fires {
					t.Errorf("%d fires after the change, want %d", n, tt.fires)
				}
				stop()
			})
		})
	}
}

// TestAnAgentThatComesAgainStartsFromNow: what it was scheduled for while the
// file did not have it was not missed; that somebody paused it still holds.
func TestAnAgentThatComesAgainStartsFromNow(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		inBubble(t, "a other", func(t *testing.T, r *rig) {
			r.agent("a").Triggers = []config.Trigger{daily(t, "daily", "9")}
			stop := r.run()
			r.sleep(time.Hour)
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			all := r.fleet
			for _, f := range []*config.Fleet{r.with(r.declare("other")), all} {
				if down {
					stop()
					r.fleet = f
					stop = r.run()
				} else if _, err := r.s.Reload(f); err != nil {
					t.Fatal(err)
				}
				r.sleep(10 * time.Hour)
			}
			defer stop()
			if n := len(r.journal("fired")); n != 0 {
				t.Errorf("%d fires by hour 21, want none", n)
			}
			r.want("a", Held)
		})
	}
}

// TestARenamedAgentStaysPaused: its pause was that of a name.
func TestARenamedAgentStaysPaused(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			stop := r.run()
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			b := *r.agent("a")
			b.Name = "b"
			if f := r.with(&b, r.declare("a2")); down {
				stop()
				r.fleet = f
				stop = r.run()
			} else if _, err := r.s.Reload(f); err != nil {
				t.Fatal(err)
			}
			defer stop()
			r.sleep(time.Second)
			r.want("b", Held)
			r.want("a2", Idle)
		})
	}
}

// TestANameThatAnotherTriggerHad: what the other one had queued kept it from
// firing, and not the other one.
func TestANameThatAnotherTriggerHad(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		trigger := func(name, prompt string) config.Trigger {
			c := daily(t, name, "9")
			c.Cron.Prompt, c.Cron.Overlap = prompt, config.OverlapSkip
			return c
		}
		with := func(triggers ...config.Trigger) *config.Fleet {
			a := r.declare("a")
			a.Triggers = triggers
			return r.with(a)
		}
		r.fleet = with(trigger("cron-1", "old"))
		stop := r.run()
		defer stop()
		if _, err := r.s.Pause(); err != nil {
			t.Fatal(err)
		}
		r.sleep(9 * time.Hour)
		if _, err := r.s.Reload(with(trigger("cron-1", "new"), trigger("cron-2", "old"))); err != nil {
			t.Fatal(err)
		}
		r.sleep(24 * time.Hour)
		fired, skipped := r.journal("fired"), r.journal("skipped")
		if len(fired) != 2 || !strings.HasPrefix(fired[1].Trigger, "a/cron-1@") || len(skipped) != 1 || !strings.HasPrefix(skipped[0].Trigger, "a/cron-2@") {
			t.Errorf("fired %+v, skipped %+v", fired, skipped)
		}
	})
}
