package firing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/sources"
)

// paced is a trigger of a lab whose rate is 2 in an hour.
func (l *lab) paced(t config.Trigger) trigger {
	l.t.Helper()
	t.Name, t.Rate = "t", config.Rate{Fires: 2, Within: time.Hour}
	l.cfg.Triggers = []config.Trigger{t}
	l.all.remember(l.cfg)
	return l.all.declared(l.cfg, 0)
}

// TestARateBoundsEachKind: over it a schedule skips, a file or a command's output is
// kept by its source, a request is told when to come again; all are taken again after
// a while, and a person may fire whenever.
func TestARateBoundsEachKind(t *testing.T) {
	t.Parallel()
	for kind, declared := range map[string]config.Trigger{
		"cron":    {Cron: &config.CronTrigger{Overlap: config.OverlapQueue, Prompt: "x"}},
		"watch":   {Watch: &config.WatchTrigger{Patterns: []string{"*"}, Prompt: "x"}},
		"poll":    {Poll: &config.PollTrigger{Command: []string{"true"}, Overlap: config.OverlapQueue}},
		"webhook": {Webhook: &config.WebhookTrigger{Path: "/x", Prompt: "x"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				one := l.paced(declared)
				begin := time.Now()
				offer := func(label string) (string, error) {
					return one.offer(t.Context(), sources.Prompt{Label: label, Text: "x", At: time.Now()})
				}
				for i := range 2 {
					if skipped, err := offer(fmt.Sprint(i)); skipped != "" || err != nil {
						t.Fatalf("fire %d: %q, %v", i, skipped, err)
					}
					time.Sleep(10 * time.Minute)
				}
				skipped, err := offer("2")
				full, waits := errors.AsType[*fullError](err)
				switch {
				case kind == "cron" && (skipped != skippedRate || err != nil):
					t.Errorf("over the rate: %q, %v", skipped, err)
				case kind != "cron" && (!waits || !full.free.Equal(begin.Add(time.Hour))):
					t.Errorf("over the rate: %q, %v", skipped, err)
				}
				if skipped, err := offer("1"); skipped != skippedTwice || err != nil {
					t.Errorf("one that is there: %q, %v", skipped, err)
				}
				if waits {
					for range 3 {
						one.fails(time.Now(), err, time.Second)
					}
				}
				if noted := l.noted(journal.Skipped); len(noted) != 1 || noted[0].Reason != skippedRate || len(l.failing) != 0 {
					t.Errorf("it is not said once: %+v, failing %+v", noted, l.failing)
				}
				if got := l.all.Refused(); len(got) != 1 || got[0].Trigger != "t" || got[0].Why != "rate" || got[0].Times != 1 {
					t.Errorf("it is counted as %+v", got)
				}
				if kind == "cron" {
					if fired, err := one.fire(t.Context(), byHand("trigger")); err != nil || fired.Queued != 1 {
						t.Errorf("by hand: %+v, %v", fired, err)
					}
				}
				again := l.all.declared(l.cfg, 0) // what a reload makes of it
				time.Sleep(40*time.Minute + time.Second)
				if skipped, err := again.offer(t.Context(), sources.Prompt{Label: "2", Text: "x"}); skipped != "" || err != nil {
					t.Errorf("after an hour: %q, %v", skipped, err)
				}
				if _, err := again.offer(t.Context(), sources.Prompt{Label: "3", Text: "x"}); kind != "cron" && err == nil {
					t.Error("the second of the first two is forgotten")
				}
			})
		})
	}
}

// TestAFailedFireUsesNoRate, nor does one from the future.
func TestAFailedFireUsesNoRate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one := l.paced(config.Trigger{Webhook: &config.WebhookTrigger{Path: "/x", Prompt: "x"}})
	for i := range 5 {
		if _, err := one.offer(t.Context(), sources.Prompt{Label: fmt.Sprint(i), Text: string(make([]byte, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	one.pace.kept.NoteRecent([]time.Time{time.Now().Add(time.Hour), time.Now().Add(2 * time.Hour)})
	if skipped, err := one.offer(t.Context(), sources.Prompt{Label: "x", Text: "x"}); skipped != "" || err != nil {
		t.Errorf("%q, %v", skipped, err)
	}
}

// TestAFullQueueKeepsOthersWaiting: what a source has found is not lost, a request is
// told to come again.
func TestAFullQueueKeepsOthersWaiting(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.room = 1
	l.cfg.Triggers = []config.Trigger{
		{Name: "hook", Webhook: &config.WebhookTrigger{Path: "/x", Prompt: "x"}},
		{Name: "poll", Poll: &config.PollTrigger{Command: []string{"true"}, Overlap: config.OverlapQueue}},
		{Name: "cron", Cron: &config.CronTrigger{Overlap: config.OverlapQueue}},
	}
	hook, polled, cron := l.all.declared(l.cfg, 0), l.all.declared(l.cfg, 1), l.all.declared(l.cfg, 2)
	offer := func(one trigger) (string, error) {
		return one.offer(context.Background(), sources.Prompt{Label: "l", Text: "x"})
	}
	if _, err := offer(cron); err != nil {
		t.Fatal(err)
	}
	w := &Webhook{t: hook, turn: make(chan struct{}, 1)}
	w.makes.Template, _ = sources.ParseWebhookTemplate("x")
	if a := w.Deliver(t.Context(), http.Header{"Idempotency-Key": {"k"}}, []byte("{}")); a.Outcome != Full || a.Why != skippedFull {
		t.Errorf("a request: %+v", a)
	}
	if _, err := offer(polled); err == nil {
		t.Error("what a poll has found is dropped")
	}
	cron.Name = "another"
	cron.key = "another"
	if skipped, err := offer(cron); skipped != skippedFull || err != nil {
		t.Errorf("a schedule: %q, %v", skipped, err)
	}
	l.room = 0
	if a := w.Deliver(t.Context(), http.Header{"Idempotency-Key": {"k"}}, []byte("{}")); a.Outcome != Queued {
		t.Errorf("the same request, later: %+v", a)
	}
	if skipped, err := offer(polled); skipped != "" || err != nil {
		t.Errorf("the poll, later: %q, %v", skipped, err)
	}
}
