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
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/sources"
)

// What is true only while a scheduler runs is not told of one that has ended; a
// scheduler that answers knows better than what it has published.
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
	for name, c := range map[string]struct {
		on   seen
		live *AgentState
		want string // state, phase, the work's delivery, the problem
	}{
		"nothing":                           {seen{}, nil, "stopped   "},
		"a run that has published nothing":  {seen{running: true}, nil, "idle   "},
		"published":                         {seen{running: true, published: &published}, nil, "running turn 1 "},
		"a run that has ended":              {seen{published: &published}, nil, "stopped   "},
		"a run that answers":                {seen{running: true, published: &published}, &live, "ending turn 2 "},
		"one whose directory went":          {seen{published: &published, missing: true}, &live, "ending turn 2 /agents/triage is not there"},
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

// TestNothingIsReadOfTheRecord: an agent can write it, and the scheduler knows what stands there.
func TestNothingIsReadOfTheRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := &config.Agent{Name: "triage", Dir: dir, Home: filepath.Join(dir, ".heartbeat"), Inbox: filepath.Join(dir, ".heartbeat/inbox.jsonl")}
	record := `{"session":"s","phase":"turn","attached":7,"work":{"delivery_id":"2"}}`
	if err := errors.Join(os.Mkdir(cfg.Home, 0o700), os.WriteFile(filepath.Join(cfg.Home, "session.json"), []byte(record), 0o600)); err != nil {
		t.Fatal(err)
	}
	unlock, err := flock.TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	for name, live := range map[string]*Live{"a run that answers": {Agents: []AgentState{{Agent: "triage", State: Running, Session: "s"}}}, "one that does not": nil} {
		if a := Read(&config.Fleet{Agents: []*config.Agent{cfg}}, t.TempDir(), live, time.Now()).Agents[0]; a.Phase != "" || a.Work != nil || a.Attached != 0 {
			t.Errorf("%s: %+v", name, a)
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

// TestWhatIsAllowedNowIsNoTrouble: a tool that was refused in the last session, and that a rule
// allows since.
func TestWhatIsAllowedNowIsNoTrouble(t *testing.T) {
	t.Parallel()
	cfg := &config.Agent{Name: "a", Permissions: config.Permissions{Allow: []string{"Read", "WebFetch"}}}
	denied := []session.Denied{{Rule: "WebFetch", Times: 2}, {Rule: "Bash(git *)", Times: 1}}
	for _, live := range []*AgentState{nil, {Agent: "a", State: Idle, Denied: denied}} {
		got := merge(cfg, seen{running: true, published: &AgentState{Agent: "a", State: Idle, Denied: denied}}, live, time.Now())
		if len(got.Denied) != 1 || got.Denied[0].Rule != "Bash(git *)" {
			t.Errorf("%+v", got.Denied)
		}
	}
	if denied[0].Rule != "WebFetch" {
		t.Error("what the scheduler says was changed")
	}
}
