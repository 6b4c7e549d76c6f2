package orchestrator

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/sources"
)

// remembers returns when the trigger of "a" fired last, as the store has it.
func (r *rig) remembers() time.Time {
	r.t.Helper()
	all, err := store.Ask(r.t.Context(), filepath.Join(r.dir, "state"), func(v *store.View) (all []int64, err error) {
		err = v.Each(`SELECT fired FROM triggers WHERE agent = 'a'`, nil, func(scan store.Scan) error {
			var fired int64
			err := scan(&fired)
			all = append(all, fired)
			return err
		})
		return all, err
	})
	if err != nil || len(all) != 1 {
		r.t.Fatalf("remembered: %+v, %v", all, err)
	}
	return store.Time(all[0])
}

// TestACrashBeforeTheRecordFiresNothingTwice: the time of the last fire is
// written a moment after the fire. When a crash comes between, the next run
// offers the same fire again, and the inbox refuses it.
func TestACrashBeforeTheRecordFiresNothingTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		hourly := cron(t, "hourly", "0 * * * *")
		hourly.Cron.Missed = sources.MissedAll
		r.agent("a").Triggers = []config.Trigger{hourly}
		stop := r.run()
		r.sleep(2*time.Hour + 5*time.Minute)
		before := r.remembers()
		r.sleep(time.Hour)
		stop()
		if got := r.remembers(); got.Sub(before) != time.Hour {
			t.Errorf("remembered %v, and %v an hour later", before, got)
		}

		storetest.Write(t, filepath.Join(r.dir, "state"), func(c *store.Change) error {
			_, err := c.Do(`UPDATE triggers SET fired = $1`, store.Millis(before))
			return err
		})
		stop = r.run()
		r.sleep(10 * time.Minute)
		if a := r.state("a"); a.Acknowledged != 0 {
			t.Errorf("%d entries were done again", a.Acknowledged)
		}
		r.sleep(time.Hour)
		stop()
		if n := len(r.journal("fired")); n != 4 {
			t.Errorf("%d fires in four hours", n)
		}
	})
}

// TestTheEndOfARunKeepsTheLastFire: what is written behind is written before
// the run ends.
func TestTheEndOfARunKeepsTheLastFire(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
		stop := r.run()
		time.Sleep(time.Hour + time.Millisecond)
		stop()
		if got, want := r.remembers(), time.Now().Truncate(time.Hour); !got.Equal(want) {
			t.Errorf("remembered %v, want %v", got, want)
		}
		if kept, err := status.Published(filepath.Join(r.dir, "state"), "a"); err != nil || kept.Session == "" {
			t.Errorf("published %+v, %v", kept, err)
		}
	})
}

// TestAPromptThatIsTooLargeIsADeadLetter: it was offered to the inbox again and
// again, and its poll never ran any more.
func TestAPromptThatIsTooLargeIsADeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").MaxEntry = 1000
		hourly := cron(t, "hourly", "0 * * * *")
		hourly.Cron.Prompt = strings.Repeat("x", 1000)
		r.agent("a").Triggers = []config.Trigger{hourly}
		stop := r.run()
		r.sleep(time.Hour + time.Minute)
		if got := r.state("a").DeadLettered; got != 1 {
			t.Errorf("%d dead letters in the status", got)
		}
		stop()
		if got := r.reasons("a"); !slices.Equal(got, []inbox.Reason{inbox.TooLarge}) {
			t.Errorf("dead letters %v, want it, too-large", got)
		}
	})
}

// TestPausesThatCannotBeRead start nobody who may be paused.
func TestPausesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		err := r.s.opt.Store.Write(t.Context(), func(c *store.Change) error { _, err := c.Do(`DROP TABLE pauses`); return err })
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.s.Reload(r.with(r.declare("a"), r.declare("b"))); err == nil || !strings.Contains(err.Error(), "cannot tell which agents are paused") {
			t.Errorf("a reload: %v", err)
		}
		if flock.Held(r.declare("b").Dir) {
			t.Error("the directory of an agent that did not come is locked")
		}
	})
}

// TestATriggerFindsWhatAKilledRunsSessionTook: what our own trigger queued started a session
// without a look, which then found that another entry is in flight, and failed.
func TestATriggerFindsWhatAKilledRunsSessionTook(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").Triggers = []config.Trigger{daily(t, "daily", "10")}
		stop := r.run()
		defer stop()
		r.sleep(time.Minute + time.Second)
		// Nobody is told of it before it is taken.
		if _, err := queue.Append(t.Context(), r.agent("a"), inbox.Letter{ID: "taken", Prompt: "taken"}); err != nil {
			t.Fatal(err)
		}
		r.take("a")
		if _, err := r.s.Trigger(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if all := r.outbox("a"); len(all) != 2 || all[0].ID != "taken" || all[0].Attempt != 2 {
			t.Errorf("%+v, want the entry at its second attempt, and what the trigger queued", all)
		}
		if a := r.state("a"); a.State != Idle || a.Failures != 0 {
			t.Errorf("%+v, want an agent that has not failed", a)
		}
	})
}

// TestFiresThatAreNotMadeUpForAreSaid: with missed: skip, or later than a grace, and how many
// they were; once. What is made up for is not said to be passed over.
func TestFiresThatAreNotMadeUpForAreSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		missed sources.Missed
		grace  time.Duration
		away   time.Duration
		times  int
	}{
		"skip":                {missed: sources.MissedSkip, away: 3 * time.Hour, times: 3},
		"skip, weeks":         {missed: sources.MissedSkip, away: 14 * 24 * time.Hour, times: 14 * 24},
		"skip, none was due":  {missed: sources.MissedSkip, away: 20 * time.Minute},
		"skip, all over":      {missed: sources.MissedSkip, away: 2 * 365 * 24 * time.Hour, times: sources.MostPassed},
		"once":                {missed: sources.MissedOnce, away: 3 * time.Hour},
		"once, over a grace":  {missed: sources.MissedOnce, grace: 10 * time.Minute, away: 3 * time.Hour, times: 3},
		"all":                 {missed: sources.MissedAll, away: 3 * time.Hour},
		"all, more than ten":  {missed: sources.MissedAll, away: 13 * time.Hour, times: 3},
		"all, partly overdue": {missed: sources.MissedAll, grace: 100 * time.Minute, away: 3 * time.Hour, times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.sleep(time.Until(time.Now().Truncate(time.Hour).Add(90 * time.Minute)))
				hourly := cron(t, "hourly", "0 * * * *")
				hourly.Cron.Missed, hourly.Cron.Grace = c.missed, c.grace
				r.agent("a").Triggers = []config.Trigger{hourly}
				r.run()()
				r.sleep(c.away)
				for again := range 2 {
					stop := r.run()
					r.sleep(time.Minute)
					refused := r.state("a").RefusedFires
					stop()
					skipped, times := r.journal(journal.Skipped), 0
					for _, e := range skipped {
						times += e.Times
					}
					if times != c.times || len(skipped) > 1 {
						t.Errorf("%d runs later: %d fires are said to be passed over, want %d: %+v", again+1, times, c.times, skipped)
					}
					if said := len(refused) == 1 && refused[0].Times == c.times && refused[0].Why == "missed"; said != (c.times > 0 && again == 0) {
						t.Errorf("%d runs later the status says %+v", again+1, refused)
					}
				}
			})
		})
	}
}
