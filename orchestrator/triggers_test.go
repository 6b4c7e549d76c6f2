package orchestrator

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
	"heartbeat/sources"
)

// remembers returns when a trigger of "a" fired last, by its file.
func (r *rig) remembers(trigger string) time.Time {
	r.t.Helper()
	var kept remembered
	if err := state.Load(filepath.Join(r.dir, "state", "triggers", "a.json"), &kept); err != nil {
		r.t.Fatal(err)
	}
	return kept.Fired[trigger]
}

// TestACrashBeforeTheRecordFiresNothingTwice: the time of the last fire is
// written a moment after the fire. When a crash comes between, the next run
// offers the same fire again, and the inbox refuses it.
func TestACrashBeforeTheRecordFiresNothingTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		hourly := cron(t, "hourly", "0 * * * *")
		hourly.Cron.Missed = sources.MissedAll
		r.agent("a").Triggers = []config.Trigger{hourly}
		stop := r.run()
		r.sleep(2*time.Hour + 5*time.Minute)
		before := r.remembers("hourly")
		r.sleep(time.Hour)
		stop()
		if got := r.remembers("hourly"); got.Sub(before) != time.Hour {
			t.Errorf("remembered %v, and %v an hour later", before, got)
		}

		path := filepath.Join(r.dir, "state", "triggers", "a.json")
		if err := state.Save(path, remembered{Fired: map[string]time.Time{"hourly": before}}); err != nil {
			t.Fatal(err)
		}
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
	r := newRig(t, "a")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		r.agent("a").Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
		stop := r.run()
		time.Sleep(time.Hour + time.Millisecond)
		stop()
		if got, want := r.remembers("hourly"), time.Now().Truncate(time.Hour); !got.Equal(want) {
			t.Errorf("remembered %v, want %v", got, want)
		}
		var kept AgentState
		if err := state.Load(statePath(filepath.Join(r.dir, "state"), "a"), &kept); err != nil || kept.Session == "" {
			t.Errorf("published %+v, %v", kept, err)
		}
	})
}

// TestAPromptThatIsTooLargeHoldsUpNothing: it was offered to the inbox again
// and again, and its poll never ran any more.
func TestAPromptThatIsTooLargeHoldsUpNothing(t *testing.T) {
	t.Parallel()
	r, s, trigger := gated(t, "exit 0")
	r.agent("a").MaxEntry = 1000
	var fired []string
	for i, text := range []string{strings.Repeat("x", 1000), "fits"} {
		skipped, err := s.enqueue(t.Context(), trigger, sources.Prompt{Label: fmt.Sprint(i), Text: text})
		if err != nil {
			t.Error(err)
		}
		fired = append(fired, skipped)
	}
	if want := []string{skippedTooLarge, ""}; !slices.Equal(fired, want) {
		t.Errorf("skipped because %q, want %q", fired, want)
	}
	lost := r.journal("skipped")
	if len(lost) != 1 || lost[0].Trigger != "a/nightly@0" || !strings.Contains(lost[0].Detail, "the limit is 1000") {
		t.Errorf("the journal: %+v", lost)
	}
}
