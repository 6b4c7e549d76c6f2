package firing

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
)

// TestATriggersSuccessClearsItsOwnTroubleOnly: whatever kind it is, what another trigger of the
// agent has queued leaves its trouble alone; and what is fired by hand does not hide that it
// does not run by itself.
func TestATriggersSuccessClearsItsOwnTroubleOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	kinds := []config.Trigger{
		{Name: "cron", Cron: &config.CronTrigger{Overlap: config.OverlapQueue}},
		{Name: "poll", Poll: &config.PollTrigger{}},
		{Name: "webhook", Webhook: &config.WebhookTrigger{Path: "/x"}},
		{Name: "watch", Watch: &config.WatchTrigger{}},
	}
	l.cfg.Triggers = kinds
	fires := func(one trigger) {
		if _, err := one.offer(t.Context(), sources.Prompt{Label: one.Name + time.Now().String(), Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if one.Watch != nil {
			one.works() // when all that it watches can be read
		}
	}
	for i := range kinds {
		failing, idle := l.all.declared(l.cfg, i), errors.New("its memory cannot be read")
		for how, fails := range map[string]func(){
			"fails":         func() { failing.failed(errors.New("x"), time.Minute) },
			"by hand":       func() { failing.failedByHand(errors.New("x")) },
			"does not run":  func() { failing.doesNotRun(idle) },
			"is lost":       func() { failing.fails(time.Now(), errors.New("x"), 0) },
			"fails, in all": func() { failing.failed(errors.New("x"), time.Minute); failing.failed(errors.New("y"), time.Minute) },
		} {
			fails()
			for j := range kinds {
				if j != i {
					fires(l.all.declared(l.cfg, j))
				}
			}
			if len(l.failing) != 1 || l.failing[0].Trigger != kinds[i].Name {
				t.Fatalf("%s %s, the others fire: %+v", kinds[i].Name, how, l.failing)
			}
			hand := l.all.declared(l.cfg, i)
			hand.byHand = byHand("trigger")
			fires(hand)
			if stays := how == "does not run" || how == "is to run"; (len(l.failing) == 1) != stays {
				t.Errorf("%s %s, and is fired by hand: %+v", kinds[i].Name, how, l.failing)
			}
			fires(l.all.declared(l.cfg, i))
			if len(l.failing) != 0 {
				t.Errorf("%s %s, and fires: %+v", kinds[i].Name, how, l.failing)
			}
		}
	}
}

// TestACommandThatOnlyDefersIsTold after a day: exit status 75 is no failure, but one that
// never says anything else is. What it says then ends that, and a fire by hand does not.
func TestACommandThatOnlyDefersIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.cfg.Triggers = []config.Trigger{{Name: "t", Poll: &config.PollTrigger{Every: time.Hour}}}
		one := l.all.declared(l.cfg, 0)
		hand := one
		one.deferred = &deferral{}
		for i := range 30 {
			if got := len(l.failing) == 1; got != (i > 24) {
				t.Errorf("after %d times: %+v", i, l.failing)
			}
			one.defers(true)
			time.Sleep(time.Hour)
		}
		if f := l.failing[0]; f.Times != 30 || time.Since(f.Since) != 30*time.Hour || !strings.Contains(f.Why.String(), "75") {
			t.Errorf("told: %+v", f)
		}
		one.works() // as when a run has succeeded
		one.defers(false)
		one.defers(true)
		hand.defers(true)
		if len(l.failing) != 0 {
			t.Errorf("after output: %+v", l.failing)
		}
	})
}
