package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
	"heartbeat/sources/webhook"
)

// fleet is a scheduler that says what it is told to.
type fleet struct {
	stuck    atomic.Bool
	ready    atomic.Bool
	stopping atomic.Bool
	agents   []status.AgentState
	backlog  []status.Backlog
}

func (f *fleet) Alive(context.Context) error {
	if f.stuck.Load() {
		return errors.New("the scheduler is stuck: its lock is not given back")
	}
	return nil
}

func (f *fleet) Vitals() orchestrator.Vitals {
	if f.stuck.Load() {
		select {} // as the real one
	}
	return orchestrator.Vitals{
		Ready: f.ready.Load(), Stopping: f.stopping.Load(), Slots: 4, Sessions: 1, Parked: at(900),
		Agents: map[status.State]int{status.Running: 1, status.Held: 1},
	}
}
func (f *fleet) Snapshot() []status.AgentState { return f.agents }
func (f *fleet) Backlog() []status.Backlog     { return f.backlog }

func at(s int64) time.Time { return time.Unix(s, 0) }

func sample() *fleet {
	f := &fleet{
		agents: []status.AgentState{
			{Agent: "a", State: status.Running, Since: at(100), Acknowledged: 3, Spent: usage.Sum{Turns: 5, Tokens: client.Tokens{Input: 6, CacheRead: 7}, Cost: 1.5}, OverBudget: true, Proof: &status.Proof{State: status.CheckRuns, Why: "SECRET"}, Work: &hook.Work{Since: at(120), Source: "SECRET", ID: "SECRET"}},
			{Agent: "b", State: status.Held, Since: at(200), Reason: "SECRET", DeadLettered: 2, Until: at(300), Aside: 2, RefusedRequests: refused},
			{Agent: "c", State: status.Held, Since: at(210), Paused: at(210)},
		},
		backlog: []status.Backlog{{Agent: "a", Queued: 2, Since: at(110)}, {Agent: "b", Dead: 7, Problem: "SECRET"}},
	}
	f.ready.Store(true)
	return f
}

var refused = []firing.RefusedRequests{{Trigger: "issues", Refused: memory.Refused{Sender: "GitHub", Fault: webhook.WrongSecret, Times: 8}}}

// events are one of each kind that is counted.
func events(m *Metrics) {
	for _, e := range []journal.Event{
		{Kind: journal.Fired, Agent: "a", Trigger: "a/cron-1@2026-01-01T00:00", At: at(10), Due: at(8)},
		{Kind: journal.Fired, Agent: "a", Trigger: "a/cron-1@SECRET+trigger-1", At: at(11)},
		{Kind: journal.Skipped, Agent: "a", Trigger: "a/cron-1@x", Reason: "its gate said no"},
		{Kind: journal.Skipped, Agent: "a", Trigger: "a/cron-1@x", Reason: "its last fire is still queued or in flight"},
		{Kind: journal.TriggerFailed, Agent: "b", Trigger: "poll-1", Reason: "SECRET"},
		{Kind: journal.Ended, Agent: "a", Why: hook.EndExited, Reason: "exited with code 1 (SECRET)"},
		{Kind: journal.Recovered, Agent: "a", Reason: "dead-lettered", Detail: "SECRET"},
		{Kind: journal.StateChanged, Agent: "b", State: string(status.BackingOff), Reason: "SECRET"},
		{Kind: journal.StateChanged, Agent: "b", State: string(status.Held)},
		{Kind: journal.Checked, Agent: "a", Verdict: "unproven", Reason: "SECRET"},
		{Kind: journal.Checked, Agent: "a", Verdict: "unproven", Detail: "SECRET"},
		{Kind: journal.Checked, Agent: "a", Verdict: "passed"},
		{Kind: journal.ReloadFailed, Reason: "SECRET"},
		{Kind: journal.Swept, Detail: "SECRET"},
	} {
		m.Observe(e)
	}
}

const want = `
heartbeat_account_parked_until_timestamp_seconds 900
heartbeat_agent_needs_person{agent="a"} 0
heartbeat_agent_needs_person{agent="b"} 1
heartbeat_agent_needs_person{agent="c"} 0
heartbeat_agent_paused_since_timestamp_seconds{agent="c"} 210
heartbeat_agent_state{agent="a",state="running"} 1
heartbeat_agent_state{agent="b",state="held"} 1
heartbeat_agent_state{agent="c",state="held"} 1
heartbeat_agent_state_since_timestamp_seconds{agent="a"} 100
heartbeat_agent_waits_until_timestamp_seconds{agent="b"} 300
heartbeat_agent_over_budget{agent="a"} 1
heartbeat_agents{state="held"} 1
heartbeat_agents{state="idle"} 0
heartbeat_backoffs_total{agent="b"} 1
heartbeat_build_info{goversion="go",revision="r",version="v"} 1
heartbeat_checks_running 1
heartbeat_checks_total{agent="a",verdict="passed"} 1
heartbeat_checks_total{agent="a",verdict="unproven"} 2
heartbeat_config_last_reload_successful 0
heartbeat_config_reloads_total{result="failure"} 1
heartbeat_cost_dollars_total{agent="a"} 1.5
heartbeat_dead_letters{agent="a"} 0
heartbeat_dead_letters{agent="b"} 7
heartbeat_entries_acknowledged_total{agent="a"} 3
heartbeat_entries_deadlettered_total{agent="b"} 2
heartbeat_entries_recovered_total{agent="a",outcome="dead-lettered"} 1
heartbeat_entry_in_flight_since_timestamp_seconds{agent="a"} 120
heartbeat_fire_lateness_seconds_bucket{le="1"} 0
heartbeat_fire_lateness_seconds_bucket{le="2.5"} 1
heartbeat_fire_lateness_seconds_count 1
heartbeat_fires_skipped_total{agent="a",reason="gate",trigger="cron-1"} 1
heartbeat_fires_skipped_total{agent="a",reason="overlap",trigger="cron-1"} 1
heartbeat_fires_total{agent="a",trigger="cron-1"} 2
heartbeat_oldest_queued_since_timestamp_seconds{agent="a"} 110
heartbeat_entries_waiting_aside{agent="b"} 2
heartbeat_queue_unreadable{agent="b"} 1
heartbeat_queued_entries{agent="a"} 2
heartbeat_scheduler_alive 1
heartbeat_scheduler_ready 1
heartbeat_session_slots 4
heartbeat_sessions 1
heartbeat_sessions_ended_total{agent="a",reason="exited"} 1
heartbeat_tokens_total{agent="a",class="cache_read"} 7
heartbeat_tokens_total{agent="a",class="input"} 6
heartbeat_trigger_failures_total{agent="b",trigger="poll-1"} 1
heartbeat_turns_total{agent="a"} 5
heartbeat_webhook_refused_requests{agent="b",reason="wrong-secret",sender="GitHub",trigger="issues"} 8
`

// serve answers on a free port and returns what asks it.
func serve(t *testing.T, m *Metrics) (get func(path string) (status int, body string)) {
	t.Helper()
	s := httptest.NewServer(m.Handler())
	t.Cleanup(s.Close)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(path string) (int, string) {
		t.Helper()
		res, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
}

func TestWhatAScrapeShows(t *testing.T) {
	t.Parallel()
	m := New(Build{Version: "v", Revision: "r", Go: "go"})
	m.Follow(sample())
	events(m)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("lint: %s: %s", p.Metric, p.Text)
	}
	get := serve(t, m)
	status, body := get("/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d\n%s", status, body)
	}
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if !strings.Contains(body, "\n"+strings.TrimSpace(line)+"\n") {
			t.Errorf("%s is missing", strings.TrimSpace(line))
		}
	}
	if strings.Contains(body, "SECRET") {
		t.Error("what entries and reasons say is shown")
	}
	m.Observe(journal.Event{Kind: journal.Removed, Agent: "a"})
	if _, body := get("/metrics"); strings.Contains(body, `heartbeat_fires_total{agent="a"`) {
		t.Error("a removed agent is still counted")
	}
	for _, path := range []string{"/", "/debug/pprof/", "/metrics/x"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	m, f := New(Build{}), sample()
	get := serve(t, m)
	check := func(what, healthz, readyz, alive string) {
		t.Helper()
		for path, want := range map[string]string{"/healthz": healthz, "/readyz": readyz} {
			wanted := http.StatusServiceUnavailable
			if want == "ok" {
				wanted = http.StatusOK
			}
			if status, body := get(path); status != wanted || !strings.HasPrefix(body, `{"status":"`+want+`"`) {
				t.Errorf("%s: %s: %d %s", what, path, status, body)
			}
		}
		if status, body := get("/metrics"); status != http.StatusOK || !strings.Contains(body, "\nheartbeat_scheduler_alive "+alive) {
			t.Errorf("%s: metrics: %d", what, status)
		}
	}
	check("nobody there yet", "ok", "starting", "1")
	f.ready.Store(false)
	m.Follow(f)
	check("recovering", "ok", "starting", "1")
	f.ready.Store(true)
	check("ready", "ok", "ok", "1")
	f.stuck.Store(true)
	check("stuck", "stuck", "stuck", "0")
	f.stuck.Store(false)
	f.stopping.Store(true)
	check("stopping", "ok", "stopping", "1")
}

// BenchmarkScrape is a scrape of 10,000 agents.
func BenchmarkScrape(b *testing.B) {
	m, f := New(Build{}), &fleet{}
	f.ready.Store(true)
	for i := range 10_000 {
		name := fmt.Sprintf("agent-%d", i)
		f.agents = append(f.agents, status.AgentState{Agent: name, State: status.Idle, Since: at(int64(i))})
		f.backlog = append(f.backlog, status.Backlog{Agent: name})
		m.Observe(journal.Event{Kind: journal.Fired, Agent: name, Trigger: name + "/cron-1@x"})
	}
	m.Follow(f)
	s := httptest.NewServer(m.Handler())
	defer s.Close()
	for b.Loop() {
		res, err := http.Get(s.URL + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		b.ReportMetric(float64(n), "bytes")
	}
}

// Words that are in no list of ours were labels: a session's end is told by
// what an agent can write.
func TestForeignWordsAreNoLabels(t *testing.T) {
	t.Parallel()
	m := New(Build{"v", "r", "go"})
	for _, why := range []string{"SECRET", "drained\u202e", "x\n1"} {
		m.Observe(journal.Event{Kind: journal.Ended, Agent: "a", Why: hook.End(why)})
		m.Observe(journal.Event{Kind: journal.Recovered, Agent: "a", Reason: foreign.Text(why)})
		m.Observe(journal.Event{Kind: journal.Skipped, Agent: "a", Trigger: "a/t@" + why, Reason: foreign.Text(why)})
	}
	for _, why := range hook.Ends() {
		m.Observe(journal.Event{Kind: journal.Ended, Agent: "b", Why: why})
	}
	all, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ends := 0
	for _, family := range all {
		if family.GetName() == "heartbeat_sessions_ended_total" {
			ends = len(family.GetMetric())
		}
		if text := family.String(); strings.Contains(text, "SECRET") || strings.Contains(text, "drained\u202e") {
			t.Errorf("a label holds what others wrote: %s", text)
		}
	}
	if want := 1 + len(hook.Ends()); ends != want {
		t.Errorf("%d ends are told apart, want %d", ends, want)
	}
}
