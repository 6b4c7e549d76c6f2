package status

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/sources"
)

// What is true only while a scheduler runs is not told of one that has ended; a
// scheduler that answers knows better than what it has published; what a session
// does is on the disk first.
func TestMerge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg := &config.Agent{Name: "triage", Dir: "/agents/triage"}
	work, newer := &hook.Work{DeliveryID: "1"}, &hook.Work{DeliveryID: "2"}
	published := AgentState{
		Agent: "triage", State: Running, Until: now, Phase: hook.Turn, Work: work, Lost: "gone", Stuck: &Stuck{}, Untended: &Unable{},
		Paused: now, QueueLost: &QueueLoss{}, Last: &session.Outcome{Why: hook.EndTimeout},
	}
	live := published
	live.State, live.Reason, live.Work = Ending, "timeout", newer
	record := func(p hook.Phase) *hook.Shown {
		var r hook.Shown
		r.Phase, r.Work = p, newer
		return &r
	}
	for name, c := range map[string]struct {
		on   seen
		live *AgentState
		want string // state, phase, the work's delivery, the problem
	}{
		"nothing":                           {seen{}, nil, "stopped   "},
		"a run that has published nothing":  {seen{running: true}, nil, "idle   "},
		"published":                         {seen{running: true, published: &published}, nil, "running turn 1 "},
		"a session that goes on":            {seen{running: true, published: &published, record: record(hook.Waiting)}, nil, "running waiting 2 "},
		"a session that has ended":          {seen{running: true, published: &published, record: record(hook.Ended)}, nil, "running turn 1 "},
		"a run that has ended":              {seen{published: &published, record: record(hook.Turn)}, nil, "stopped   "},
		"a run that answers":                {seen{running: true, published: &published}, &live, "ending turn 2 "},
		"one that has not heard yet":        {seen{running: true, record: record(hook.Waiting)}, &published, "running waiting 2 "},
		"one whose directory went":          {seen{published: &published, missing: true}, &live, "ending turn 2 /agents/triage is not there; heartbeat apply triage makes it"},
		"what it published is not readable": {seen{unknown: errors.New("damaged"), missing: true}, nil, "stopped   damaged"},
		"a queue that cannot be read":       {seen{queue: seenQueue{err: errors.New("no queue"), depth: inbox.Depth{Entries: 3}}}, nil, "stopped   no queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := merge(cfg, c.on, c.live, now)
			delivery := ""
			if got.Work != nil {
				delivery = got.Work.DeliveryID
			}
			if text := strings.Join([]string{string(got.State), string(got.Phase), delivery, got.Problem}, " "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if ended := c.live == nil && !c.on.running; ended && (got.Lost != "" || got.Stuck != nil || got.Untended != nil || !got.Until.IsZero()) {
				t.Errorf("it tells of a run that has ended: %+v", got)
			}
			if kept := c.on.published != nil; kept && (got.Paused.IsZero() || got.QueueLost == nil || got.Last == nil) {
				t.Errorf("it has lost what is true without a run: %+v", got)
			}
			if unread := c.on.queue.err != nil; got.Unread != unread || unread && got.Depth.Entries != 0 {
				t.Errorf("the queue: %+v", got)
			}
		})
	}
}

// TestASessionIsHeardBeforeItsScheduler: restart --now and stop --now said nothing of a
// prompt that the scheduler did not know yet, and status did.
func TestASessionIsHeardBeforeItsScheduler(t *testing.T) {
	t.Parallel()
	cfg := &config.Agent{Name: "triage", Home: t.TempDir()}
	record := `{"session":"s","phase":"turn","work":{"delivery_id":"2"}}`
	if err := os.WriteFile(filepath.Join(cfg.Home, "session.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		says AgentState
		want bool
	}{
		"its session":       {AgentState{State: Running, Session: "s"}, true},
		"another session":   {AgentState{State: Running, Session: "t"}, false},
		"one that is over":  {AgentState{State: Idle, Session: "s"}, false},
		"an older delivery": {AgentState{State: Ending, Session: "s", Work: &hook.Work{DeliveryID: "1"}}, true},
	} {
		c.says.Hear(cfg)
		if got := c.says.Work != nil && c.says.Work.DeliveryID == "2" && c.says.Phase == hook.Turn; got != c.want {
			t.Errorf("%s: %+v", name, c.says)
		}
	}
}

// The next fire is the first of all schedules.
func TestTriggersAtAGlance(t *testing.T) {
	t.Parallel()
	cron := func(spec string) config.Trigger {
		schedule, err := sources.ParseSchedule(spec, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return config.Trigger{Name: spec, Cron: &config.CronTrigger{Schedule: schedule}}
	}
	cfg := &config.Agent{Name: "triage", Triggers: []config.Trigger{
		cron("0 9 * * *"), cron("0 8 * * *"), {Watch: &config.WatchTrigger{}}, {Poll: &config.PollTrigger{}},
	}}
	got := merge(cfg, seen{}, nil, time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC))
	if got.Next.UTC().Hour() != 8 || got.Watches != 1 || got.Polls != 1 {
		t.Errorf("%+v", got)
	}
}
