package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/sources"
)

// write puts a heartbeat.yaml into a new directory.
func write(t testing.TB, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "heartbeat.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t testing.TB, path string) *Fleet {
	t.Helper()
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// everyField gives every field a value that is not its default.
const everyField = `
version: 1
name: office
max-sessions: 7
max-checks: 2
defaults:
  timezone: Europe/Rome
  timeout: 2h
  permissions: {mode: default, deny: [WebFetch]}
  env: {A: default, B: default}
agents:
  all:
    dir: work
    command: [heartbeat, simulate, 3]
    settings: flag
    trust-dir: true
    permissions:
      mode: acceptEdits
      allow: [Read, "Bash(git *)"]
    mode: persist
    idle-interval: 1d12h
    on-idle: tick
    kickoff: Read CLAUDE.md
    context: resume
    max-context: 70%
    background: ignore
    background-timeout: 1m
    foreign-stop-hooks: gate
    on-limit: hold
    client-drift: hold
    limits: {five-hour: 95%, seven-day: 90%, active-hours: "Mon-Fri 09:00-18:00"}
    on-orphan: retry
    max-attempts: 2
    max-continuations: 3
    max-entry: 64KiB
    max-queue: 100
    timeout: none
    session-timeout: 3h
    start-timeout: 4s
    idle-grace: 5s
    end-grace: 6s
    auto-update: true
    stall-timeout: 8m
    tool-timeout: 20m
    tool-timeouts: {WebFetch: 2m, Bash: none}
    stuck-after: none
    resources: {memory: 2GiB, processes: 500, cpu: 1.5, required: true}
    budget: {hour: {turns: 30, tokens: 500k}, day: {cost: 2.5, resent: 1.5M}, entry: {tokens: 70000}}
    approvals: {always: [read], never: [destroy, auth], after: {write: 3}, by: person}
    env-file: secrets/all.env
    env-allow: [HTTPS_PROXY, "AWS_*"]
    env-deny: ["*_TOKEN"]
    max-restarts: 0
    restart-window: 7m
    inbox: queue/in.jsonl
    env: {B: own, C: 5}
    until: {check: [make, test], check-timeout: 20m, approve: [release], aside: true, promise: DONE, max-iterations: 3, max-time: none, env: {CI: 1}, hold: 1h}
    triggers:
      - cron: "30 0 9 * * *"
        seconds: true
        timezone: America/New_York
        prompt: "It is {{.At}}"
        missed: all
        grace: 2h
        jitter: 90s
        overlap: queue
        name: morning
        gate: [test, -e, open]
        until: {check: [make, lint]}
        rate: 10/1h
      - watch: ["in/**/*.md", "*.txt"]
        prompt: "Process {{.Path}}"
        debounce: 1s
        removed: true
        ignore-own: true
        batch: true
      - poll: [sh, -c, "echo hi"]
        every: 5m
        timeout: 9s
        split: json
        dedupe: key
        key: "{{.JSON.id}}"
        overlap: queue
        prompt: "Ticket {{.Output}}"
        backs-up: webhook-1
      - webhook: /github/issues
        secret-file: secrets/github
        match: {headers: {x-github-event: issues}, json: {label.name: [a, 7]}}
        key: "{{.JSON.id}}"
        prompt: 'Issue {{.JSON.issue.title}} ({{.Header "X-GitHub-Event"}})'
        reply-to: desk
        urgent: true
    notify: [desk]
    while-down: refuse
    down-text: Ask the desk.
  plain:
    dir: plain
notify: {desk: {command: [cat]}}
listen:
  - {address: "[::1]:8321", serve: [webhooks]}
  - {address: unix:run/doors.sock, serve: [metrics, webhooks], secret-file: secrets/metrics, access: group}
`

func TestEveryField(t *testing.T) {
	t.Parallel()
	path := write(t, everyField)
	f := mustLoad(t, path)
	dir := filepath.Dir(path)
	if f.Path != path || f.Name != "office" || f.MaxSessions != 7 || f.MaxChecks != 2 || len(f.Agents) != 2 {
		t.Errorf("fleet %+v", f)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := sources.ParseScheduleWithSeconds("30 0 9 * * *", zone)
	if err != nil {
		t.Fatal(err)
	}
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	want := &Agent{
		Name: "all", File: path, Line: 12, Dir: dir + "/work", Inbox: dir + "/work/queue/in.jsonl", Home: dir + "/work/.heartbeat",
		Command: []string{"heartbeat", "simulate", "3"}, Self: true, Settings: SettingsFlag, TrustDir: true,
		Permissions: Permissions{Mode: "acceptEdits", Allow: []string{"Read", "Bash(git *)"}, Deny: []string{"WebFetch"}},
		Mode:        hook.Persist, IdleInterval: 36 * time.Hour, OnIdle: hook.IdleTick, Context: hook.ContextResume, MaxContext: 70,
		Background: hook.BackgroundIgnore, Foreign: hook.ForeignGate, KickoffText: "Read CLAUDE.md", OnLimit: LimitHolds, ClientDrift: DriftHolds, OnOrphan: inbox.Retry,
		Limits: Limits{FiveHour: 95, SevenDay: 90, Active: Hours{[7]bool{1: true, 2: true, 3: true, 4: true, 5: true}, 540, 1080}},
		Zone:   rome, MaxAttempts: 2, MaxContinuations: 3, MaxEntry: 64 << 10, MaxQueue: 100, Timeout: 0, SessionTimeout: 3 * time.Hour,
		StartTimeout: 4 * time.Second, IdleGrace: 5 * time.Second, Grace: 6 * time.Second,
		BackgroundTimeout: time.Minute, MaxRestarts: 0, RestartWindow: 7 * time.Minute,
		Until: &Until{
			Check: []string{"make", "test"}, CheckTimeout: 20 * time.Minute, Approve: []string{"release"}, Aside: true, Promise: "DONE", MaxIterations: 3, Env: map[string]string{"CI": "1"}, Hold: time.Hour,
		},
		Resources: Resources{Memory: 2 << 30, Processes: 500, CPU: 1.5, Required: true},
		Budget: Budget{
			Hour: Allowance{Turns: 30, Tokens: 500_000}, Day: Allowance{Cost: 2.5, Resent: 1_500_000}, Entry: Allowance{Tokens: 70_000},
		},
		Env: map[string]string{"A": "default", "B": "own", "C": "5"}, StallTimeout: 8 * time.Minute,
		Approvals:  Approvals{Always: []string{"read"}, Never: []string{"destroy", "auth"}, After: map[string]int{"write": 3}},
		AutoUpdate: true, ToolTimeout: 20 * time.Minute, ToolTimeouts: map[string]time.Duration{"WebFetch": 2 * time.Minute, "Bash": 0},
		EnvFile: dir + "/secrets/all.env", EnvAllow: []string{"HTTPS_PROXY", "AWS_*"}, EnvDeny: []string{"*_TOKEN"},
		Notify: []string{"desk"}, WhileDown: DownRefuses, DownText: "Ask the desk.",
		Triggers: []Trigger{
			{Name: "morning", Named: true, Line: 59, Gate: []string{"test", "-e", "open"}, Until: NewUntil("make", "lint"), Rate: Rate{10, time.Hour}, Cron: &CronTrigger{Schedule: schedule, Prompt: "It is {{.At}}", Missed: sources.MissedAll, Grace: 2 * time.Hour, Jitter: 90 * time.Second, Overlap: OverlapQueue}},
			{Name: "watch-1", Line: 71, Watch: &WatchTrigger{Patterns: []string{"in/**/*.md", "*.txt"}, Prompt: "Process {{.Path}}", Debounce: time.Second, Removed: true, IgnoreOwn: true, Batch: true}},
			{Name: "poll-1", Line: 77, Poll: &PollTrigger{
				Command: []string{"sh", "-c", "echo hi"}, Every: 5 * time.Minute, Timeout: 9 * time.Second,
				Split: sources.SplitJSON, Prompt: "Ticket {{.Output}}", Dedupe: true, Key: "{{.JSON.id}}", Overlap: OverlapQueue, BacksUp: "webhook-1",
			}},
			{Name: "webhook-1", ReplyTo: "desk", Urgent: true, Line: 86, Webhook: &WebhookTrigger{
				Path: "/github/issues", SecretFile: dir + "/secrets/github", Key: "{{.JSON.id}}",
				Prompt: `Issue {{.JSON.issue.title}} ({{.Header "X-GitHub-Event"}})`,
				Match: []sources.Condition{
					{Header: "X-Github-Event", Values: []string{"issues"}},
					{Field: []string{"label", "name"}, Values: []string{"a", "7"}},
				},
			}},
		},
	}
	same := cmp.Comparer(func(a, b sources.Schedule) bool {
		return a == b || a.String() == b.String() && a.Location().String() == b.Location().String()
	})
	sameZone := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, f.Agent("all"), same, sameZone); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	listen := []Listen{
		{Network: "tcp", Address: "[::1]:8321", Serves: []Service{ServesWebhooks}, Mode: 0o600},
		{Network: "unix", Address: dir + "/run/doors.sock", Serves: []Service{ServesMetrics, ServesWebhooks}, SecretFile: dir + "/secrets/metrics", Mode: 0o660},
	}
	if diff := cmp.Diff(listen, f.Listen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := &Agent{
		Name: "plain", File: path, Line: 96, Dir: dir + "/plain", Inbox: dir + "/plain/.heartbeat/inbox.jsonl", Home: dir + "/plain/.heartbeat",
		Command: []string{"claude"}, Settings: SettingsProject,
		Permissions: Permissions{Mode: "default", Deny: []string{"WebFetch"}},
		Mode:        hook.Drain, IdleInterval: 30 * time.Minute, OnIdle: hook.IdleRelease, Context: hook.ContextSession,
		Background: hook.BackgroundWait, Foreign: hook.ForeignLearn, OnLimit: LimitResumes, ClientDrift: DriftWarns, OnOrphan: inbox.DeadLetter,
		MaxAttempts: 5, MaxContinuations: 20, MaxEntry: 1 << 20, Timeout: 2 * time.Hour,
		StartTimeout: 30 * time.Second, IdleGrace: 10 * time.Second, Grace: 10 * time.Second, StuckAfter: 30 * time.Minute, StallTimeout: 15 * time.Minute,
		BackgroundTimeout: 10 * time.Minute, MaxRestarts: 5, RestartWindow: 30 * time.Minute,
		Zone: rome, Env: map[string]string{"A": "default", "B": "default"}, WhileDown: DownQueues,
	}
	if diff := cmp.Diff(plain, f.Agent("plain"), same, sameZone); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.Agent("nobody") != nil {
		t.Error("an agent that is not declared was found")
	}
}

func TestDefaultsOfTriggersAndTimeZone(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
defaults:
  timezone: Asia/Tokyo
  triggers: [{cron: "@daily", prompt: a}, {cron: "@hourly", prompt: b}, {poll: [x]}]
agents:
  inherits: {dir: a}
  own: {dir: b, trigger: {watch: ["*"], prompt: c}}
`))
	var names []string
	for _, trigger := range f.Agent("inherits").Triggers {
		names = append(names, trigger.Name)
	}
	if diff := cmp.Diff([]string{"cron-1", "cron-2", "poll-1"}, names); diff != "" {
		t.Error(diff)
	}
	first := f.Agent("inherits").Triggers[0]
	if zone := first.Cron.Schedule.Location().String(); zone != "Asia/Tokyo" || first.Cron.Missed != sources.MissedOnce {
		t.Errorf("zone %s, missed %s", zone, first.Cron.Missed)
	}
	if own := f.Agent("own").Triggers; len(own) != 1 || own[0].Watch == nil || own[0].Watch.Debounce != DefaultDebounce {
		t.Errorf("own triggers: %+v", own)
	}
	poll := f.Agent("inherits").Triggers[2].Poll
	if poll.Every != time.Minute || poll.Timeout != time.Minute || poll.Split != sources.SplitWhole || poll.Prompt != "" {
		t.Errorf("poll %+v", poll)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
agents:
  a: &base
    dir: a
    timeout: &long 3h
    command: [first]
  b:
    <<: *base
    dir: b
    session-timeout: *long
  c:
    <<: [{dir: c, mode: persist}, *base]
`))
	b, c := f.Agent("b"), f.Agent("c")
	if b.Timeout != 3*time.Hour || b.SessionTimeout != 3*time.Hour || b.Command[0] != "first" || filepath.Base(b.Dir) != "b" {
		t.Errorf("b: %+v", b)
	}
	if filepath.Base(c.Dir) != "c" || c.Mode != hook.Persist || c.Timeout != 3*time.Hour {
		t.Errorf("c: %+v", c)
	}
}

func TestPathsExpand(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("HEARTBEAT_TEST_DIR", "nested/deep")
	prompt := filepath.Join(home, "prompt.txt")
	if err := os.WriteFile(prompt, []byte("Line 1\nLine 2 {{.Label}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := write(t, `
version: 1
agents:
  home: {dir: ~/agent, inbox: "${HOME}/agent/queue.jsonl", trigger: {cron: "@daily", prompt-file: "~/prompt.txt"}}
  variable: {dir: "sub/${HEARTBEAT_TEST_DIR}/x", command: ["~/bin", "${HOME}"], env: {P: "${HOME}"}}
`)
	f := mustLoad(t, path)
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	a, v := f.Agent("home"), f.Agent("variable")
	if a.Dir != filepath.Join(real, "agent") || a.Inbox != filepath.Join(real, "agent/queue.jsonl") {
		t.Errorf("%s, %s", a.Dir, a.Inbox)
	}
	if got := a.Triggers[0].Cron.Prompt; got != "Line 1\nLine 2 {{.Label}}" {
		t.Errorf("prompt %q", got)
	}
	if v.Dir != filepath.Join(filepath.Dir(path), "sub/nested/deep/x") {
		t.Errorf("dir %s", v.Dir)
	}
	if v.Command[0] != "~/bin" || v.Command[1] != "${HOME}" || v.Env["P"] != "${HOME}" {
		t.Errorf("expanded where it should not: %v %v", v.Command, v.Env)
	}
}

func TestLinksAreResolved(t *testing.T) {
	t.Parallel()
	path := write(t, "version: 1\nagents:\n  a: {dir: link/new/er}\n")
	dir := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got := mustLoad(t, path).Agents[0].Dir; got != filepath.Join(dir, "real/new/er") {
		t.Errorf("got %s", got)
	}
}

// TestFleetName: the name is that of the path as it was typed, wherever a link on it leads.
func TestFleetName(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "my fleet (1)")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "heartbeat.yaml")
	if err := os.WriteFile(file, Starter(), 0o600); err != nil {
		t.Fatal(err)
	}
	name := mustLoad(t, file).Name
	if !strings.HasPrefix(name, "my-fleet-1-") || len(name) != len("my-fleet-1-")+8 {
		t.Errorf("name %q", name)
	}
	link := filepath.Join(root, "current")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	linked := mustLoad(t, filepath.Join(link, "heartbeat.yaml"))
	if !strings.HasPrefix(linked.Name, "current-") || linked.Named {
		t.Errorf("through a link %+v", linked)
	}
	if err := errors.Join(os.Rename(dir, dir+"2"), os.Remove(link), os.Symlink(dir+"2", link)); err != nil {
		t.Fatal(err)
	}
	if now := mustLoad(t, filepath.Join(link, "heartbeat.yaml")).Name; now != linked.Name {
		t.Errorf("the link leads elsewhere: %q, before %q", now, linked.Name)
	}
}

func TestLoadOfNoFile(t *testing.T) {
	t.Parallel()
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "cannot read configuration: ") {
		t.Errorf("got %v", err)
	}
}

func TestStarter(t *testing.T) {
	t.Parallel()
	for _, file := range []func() []byte{Starter, Reference} {
		f := mustLoad(t, write(t, string(file())))
		if len(f.Agents) != 1 || f.Agents[0].Triggers[0].Cron == nil || len(f.Agents[0].EnvAllow) == 0 {
			t.Errorf("%+v", f.Agents)
		}
		a, b := file(), file()
		a[0] = 'x'
		if b[0] == 'x' || file()[0] == 'x' {
			t.Error("a caller can change the file")
		}
	}
	if n := strings.Count(string(Starter()), "\n"); n > 12 {
		t.Errorf("%d lines to start with", n)
	}
}

// TestExamples loads every example, so that none of them rots.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*/heartbeat.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		f := mustLoad(t, file)
		for _, a := range f.Agents {
			if !strings.HasPrefix(a.Dir, filepath.Dir(f.Path)+"/") {
				t.Errorf("%s: %s stands outside of the example: %s", file, a.Name, a.Dir)
			}
		}
	}
}

func TestAgentOfAFleetThatWasNotLoaded(t *testing.T) {
	t.Parallel()
	f := &Fleet{Agents: []*Agent{{Name: "a"}, {Name: "b"}}}
	if f.Agent("b") != f.Agents[1] || f.Agent("c") != nil {
		t.Error("not found by name")
	}
}
