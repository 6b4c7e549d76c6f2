package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/process"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/store"
)

// running is `heartbeat run` in the background.
type running struct {
	w      *world
	cmd    *exec.Cmd
	stderr *testbed.Output
	done   chan struct{} // it has ended
}

// background starts the fleet and waits until it answers.
func (w *world) background(args ...string) *running {
	w.t.Helper()
	t := w.t
	// Not the test's own context: it ends before the cleanup, which waits for the end
	// of the sessions before their folders go.
	like := w.command(append([]string{"run"}, args...)...)
	r := &running{w: w, cmd: exec.Command(like.Path, like.Args[1:]...), stderr: &testbed.Output{}, done: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = like.Dir, like.Env, r.stderr, r.stderr
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = r.cmd.Wait(); close(r.done) }()
	w.t.Cleanup(r.end)
	until(t, "the scheduler answers", func() bool { return w.fleet().Scheduler.PID == r.cmd.Process.Pid })
	return r
}

// stop ends the run as a service manager does and returns its exit status.
func (r *running) stop() int {
	r.w.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.w.t.Fatal(err)
	}
	return r.ended()
}

// ended waits for the end of the run and returns its exit status.
func (r *running) ended() int {
	<-r.done
	return r.cmd.ProcessState.ExitCode()
}

// end ends a run that the test has left, with its sessions.
func (r *running) end() {
	for _, sig := range []os.Signal{syscall.SIGCONT, syscall.SIGTERM, syscall.SIGINT} { // the second one ends sessions at once
		_ = r.cmd.Process.Signal(sig)
	}
	select {
	case <-r.done:
	case <-time.After(patience):
		r.w.t.Error("heartbeat run did not end")
		_ = r.cmd.Process.Kill()
		<-r.done
	}
	if r.w.t.Failed() {
		r.w.t.Logf("heartbeat run:\n%s", r.stderr)
	}
}

// fleetView is `heartbeat status` as a reader in another language sees it.
type fleetView struct {
	Scheduler struct {
		PID int `json:"pid"`
	} `json:"scheduler"`
	Agents []agentView `json:"agents"`
}

type agentView struct {
	Agent, State, Reason string
	Acknowledged         int
	Today                struct {
		Turns int
		Cost  float64
	}
	Depth struct{ Entries, Aside int }
}

func (w *world) fleet() (f fleetView) {
	w.t.Helper()
	o := w.run("status", "-o", "json") // it fails where a run was killed, and says the same
	if err := json.Unmarshal(envelopeOf(w.t, o).Data, &f); err != nil {
		w.t.Fatalf("status: %v: %+v", err, o)
	}
	return f
}

func (w *world) agent(name string) agentView {
	w.t.Helper()
	for _, a := range w.fleet().Agents {
		if a.Agent == name {
			return a
		}
	}
	return agentView{}
}

const simulated = `version: 1
name: fleet
agents:
  triage:
    dir: agents/triage
    command: [heartbeat, simulate]
    trigger: {cron: "0 9 * * 1-5", prompt: "What is new?", timezone: Europe/Rome}
`

func TestNobodyToControl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	for _, args := range [][]string{{"restart", "--all"}, {"resume", "--all"}, {"trigger", "triage"}, {"reload"}} { // it never ran: nothing to resume
		o := w.run(args...)
		if o.status != exitNotRunning || !strings.Contains(o.stderr, "hint: heartbeat run starts it") {
			t.Errorf("heartbeat %q: status %d\n%s", args, o.status, o.stderr)
		}
	}
	for _, args := range [][]string{{"pause"}, {"pause", "triage", "--all"}, {"resume"}, {"run", "--once", "--watch-config"}} {
		if o := w.run(args...); o.status != exitUsage {
			t.Errorf("heartbeat %q: status %d, want wrong usage\n%s", args, o.status, o.stderr)
		}
	}
	if o := w.run("logs", "triage"); o.status != exitError || !strings.Contains(o.stderr, "it has had none") {
		t.Errorf("logs: status %d\n%s", o.status, o.stderr)
	}
	if out := w.ok("history"); out != "nothing has happened yet\n" {
		t.Errorf("history: %s", out)
	}
	if out := w.ok("events"); out != "" {
		t.Errorf("events: %s", out)
	}
}

func TestControlOfARunningFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()

	if out := w.ok("pause", "triage"); out != "triage: paused\n" {
		t.Errorf("pause: %s", out)
	}
	if out := w.ok("trigger", "triage"); !strings.Contains(out, "cron-1   1") {
		t.Errorf("trigger: %s", out)
	}
	if out := w.ok("trigger", "triage", "cron-1"); !strings.Contains(out, "its last fire is still queued or in flight") {
		t.Errorf("trigger again: %s", out)
	}
	if o := w.run("trigger", "triage", "none"); o.status != exitError || !strings.Contains(o.stderr, "its triggers are cron-1") {
		t.Errorf("an unknown trigger: status %d\n%s", o.status, o.stderr)
	}
	if a := w.agent("triage"); a.State != "held" || a.Reason != "paused by a person" || a.Depth.Entries != 1 {
		t.Errorf("paused: %+v", a)
	}
	w.ok("resume", "--all")
	until(t, "the prompt is done", func() bool { a := w.agent("triage"); return a.Acknowledged == 1 && a.State == "idle" })

	if out := w.ok("history", "triage"); !strings.Contains(out, "session") || !strings.Contains(out, "drained") {
		t.Errorf("history: %s", out)
	}
	events := w.ok("events", "triage")
	for _, want := range []string{"paused: by a person\n", "resumed\n", "idle → paused: paused by a person", "paused → idle: resumed by a person", "fired triage/cron-1@", "running → ", "ended, 1 done: drained"} {
		if !strings.Contains(events, want) {
			t.Errorf("events lack %q:\n%s", want, events)
		}
	}
	if out := w.ok("logs", "triage"); !strings.Contains(out, "> What is new?") {
		t.Errorf("logs: %s", out)
	}
	if out := w.ok("logs", "triage", "--raw"); !strings.Contains(out, "What is new?") {
		t.Errorf("the terminal: %q", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if out := w.ok("status"); strings.Contains(out, "scheduler: running") {
		t.Errorf("status after the end: %s", out)
	}
}

// TestASessionThatAPauseEndsWasNotShutDown: the journal said that it was, which
// reads like a stop of the scheduler.
func TestASessionThatAPauseEndsWasNotShutDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(simulated, "    dir: agents/triage\n", "    dir: agents/triage\n    mode: persist\n", 1))
	r := w.background()
	w.ok("send", "triage", "What is new?")
	until(t, "its session waits", func() bool { a := w.agent("triage"); return a.Acknowledged == 1 && a.State == "running" })
	w.ok("pause", "triage")
	until(t, "its session has ended", func() bool { a := w.agent("triage"); return a.State == "held" })
	if out := w.ok("events", "triage"); !strings.Contains(out, "finished (paused by a person)") || strings.Contains(out, "shutdown") {
		t.Errorf("events:\n%s", out)
	}
	if out := w.ok("status"); strings.Contains(out, "shutdown") || !strings.Contains(out, "1 done") {
		t.Errorf("status:\n%s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestADirectoryThatIsClonedAgainIsTheRunsAgain: the lock and the watch stayed
// with the old one; send said that nothing runs, and a second run was accepted.
func TestADirectoryThatIsClonedAgainIsTheRunsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	dir := filepath.Join(w.dir, "agents/triage")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	until(t, "status says that it is gone", func() bool { return strings.Contains(w.ok("status"), "! triage: "+dir+" is not there") })
	until(t, "the scheduler has noticed", func() bool { return strings.Contains(w.ok("events", "triage"), "directory-lost") })
	w.ok("apply", "triage")
	until(t, "it is locked again", func() bool { return strings.Contains(w.ok("events", "triage"), "directory-found") })
	if out := w.ok("send", "triage", "What is new?"); strings.Contains(out, "no scheduler runs the agent") {
		t.Errorf("send: %s", out)
	}
	if o := w.run("run", "triage", "--once"); o.status == exitOK || !strings.Contains(o.stderr, "another heartbeat") {
		t.Errorf("a second run: status %d\n%s", o.status, o.stderr)
	}
	until(t, "the prompt is done", func() bool { return w.agent("triage").Acknowledged == 1 })
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestAPauseOfAStoppedSchedulerIsNotCarriedOutLater: its client was killed
// while it waited, and the agent was paused all the same when the scheduler
// went on.
func TestAPauseOfAStoppedSchedulerIsNotCarriedOutLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"notify: {desk: {command: ['true']}}\n")
	r := w.background()
	signal := func(sig syscall.Signal) {
		if err := r.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	until(t, "it is stopped, as far as the system tells", func() bool { state := process.StateOf(r.cmd.Process.Pid); return state == 'T' || state == 0 })
	asking := map[*exec.Cmd]*testbed.Output{}
	for _, args := range [][]string{{"pause", "triage"}, {"trigger", "triage"}, {"cancel", "triage"}, {"restart", "--now", "triage"}, {"send", "triage", "--reply-to", "desk", "nobody waits for it"}} {
		cmd, errs := w.command(args...), &testbed.Output{}
		cmd.Stderr, asking[cmd] = errs, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for cmd, errs := range asking {
		until(t, fmt.Sprintf("a word about the scheduler by %s", cmd.Args[1:]), func() bool { return strings.Contains(errs.String(), "does not answer yet") })
	}
	if o := w.run("status"); o.status != exitError || !strings.Contains(o.stdout, "does not answer: a signal has stopped it") || !strings.Contains(o.stdout, "triage") {
		t.Errorf("status: %+v", o)
	}
	goes := fmt.Sprintf("kill -CONT %d", r.cmd.Process.Pid)
	for _, args := range [][]string{{"send", "triage", "hello"}, {"send", "triage", "--in", "1h", "hello"}} {
		if out := w.ok(args...); process.StateOf(r.cmd.Process.Pid) == 'T' && !strings.Contains(out, goes) {
			t.Errorf("%q says nothing of it:\n%s", args, out)
		}
	}
	if o := w.run("stop"); o.status != exitError || !strings.Contains(o.stderr, goes) || strings.Count(o.stderr, "does not answer yet") != 1 {
		t.Errorf("stop waits for it twice: %+v", o)
	}
	for cmd, errs := range asking { // all have begun before the stop
		if n := strings.Count(errs.String(), "does not answer yet"); n != 1 {
			t.Errorf("%q has said %d times that it does not answer", cmd.Args[1:], n)
		}
	}
	attach, errs := w.command("attach", "--wait", "--read-only", "triage", "--heartbeat-interval", "100ms"), &testbed.Output{}
	attach.Stderr, asking[attach] = errs, errs
	if err := attach.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "attach says what it waits for", func() bool { return strings.Contains(errs.String(), "waiting for a session of triage; the scheduler") })
	for _, args := range [][]string{{"status"}, {"doctor"}} {
		if o := w.run(args...); !strings.Contains(o.stdout, fmt.Sprintf("the scheduler (process %d) does not answer", r.cmd.Process.Pid)) || !strings.Contains(o.stdout, "last seen") || !strings.Contains(o.stdout, goes) {
			t.Errorf("%q does not say since when, and what helps: %+v", args, o)
		}
	}
	for cmd := range asking {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	signal(syscall.SIGCONT)
	until(t, "the scheduler lives", func() bool { return strings.Contains(r.stderr.String(), "not carried out") })
	if a := w.agent("triage"); a.State == "held" {
		t.Errorf("paused by who had gone: %+v", a)
	}
	w.ok("pause", "triage")
	r.stop()
	waits, err := store.Ask(t.Context(), filepath.Join(w.dir, "state", "fleet"), awaited.All)
	if text := w.get("agents/triage/.heartbeat/inbox.jsonl"); err != nil || len(waits) > 0 || strings.Contains(text, "nobody waits for it") {
		t.Errorf("a prompt whose sender heard nothing was queued: %v, %v\n%s", waits, err, text)
	}
}

func TestReloadOfARunningFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background("--watch-config")
	hup := func(text string) {
		w.put("heartbeat.yaml", text)
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	added := simulated + "  builder:\n    dir: agents/builder\n    command: [heartbeat, simulate]\n"
	hup(added)
	until(t, "the added agent is run", func() bool { return w.agent("builder").State == "idle" })
	w.ok("send", "builder", "hello")
	until(t, "it works", func() bool { return w.agent("builder").Acknowledged == 1 })

	if out := w.ok("reload"); out != "nothing changed: 2 agents as before\n" {
		t.Errorf("reload without a change: %s", out)
	}

	hup(strings.Replace(added, "dir: agents/builder", "dri: agents/builder", 1))
	until(t, "the bad file is told of", func() bool { return strings.Contains(r.stderr.String(), "the old one stays") })

	w.put("heartbeat.yaml", simulated) // without a signal: --watch-config sees it
	until(t, "the removed agent is gone", func() bool { return strings.Contains(r.stderr.String(), "agent removed") })
	if out := w.ok("events"); !strings.Contains(out, "reloaded\n    added: builder; unchanged: 1") || !strings.Contains(out, "reload-failed") ||
		!strings.Contains(out, "reloaded\n    removed: builder; unchanged: 1") {
		t.Errorf("events: %s", out)
	}
	r.stop()
}

func TestFollowEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	follow := w.command("events", "-f", "-n", "0", "-o", "json")
	out := &testbed.Output{}
	follow.Stdout = out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "a pause is seen", func() bool {
		w.ok("pause", "triage")
		w.ok("resume", "triage")
		return strings.Contains(out.String(), `"kind":"paused"`)
	})
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("events -f: %v", err)
	}
	envelopeOf(t, outcome{stdout: out.String()})
	r.stop()
}

func TestNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+`  builder:
    dir: agents/builder
    triggers:
      - {cron: "0 9 * * 1-5", timezone: America/New_York, prompt: x}
      - {watch: ["in/*.md"], prompt: "{{.Path}}", urgent: true}
      - {poll: [./next.sh], every: 5m}
`)
	var next struct {
		Fires []struct {
			Agent, Trigger, Timezone string
			At                       time.Time
		}
	}
	w.into(&next, "next", "-n", "4")
	if len(next.Fires) != 4 {
		t.Fatalf("%+v", next)
	}
	for i, f := range next.Fires {
		zone, err := time.LoadLocation(f.Timezone)
		if err != nil || f.Timezone == "" || f.At.Location() != time.UTC {
			t.Fatalf("fire %d: %+v: %v", i, f, err)
		}
		f.At = f.At.In(zone)
		if f.At.Before(time.Now()) || f.At.Hour() != 9 || f.At.Minute() != 0 || i > 0 && f.At.Before(next.Fires[i-1].At) {
			t.Errorf("fire %d: %+v", i, f)
		}
	}
	text := w.ok("next")
	for _, want := range []string{"UTC", "CE", "builder  watch-1  when in/*.md change, urgent\n", "builder  poll-1   asked every 5m0s\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("next lacks %q:\n%s", want, text)
		}
	}
}

func TestFollowForShort(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{"events -f triage", "events --follow triage"},
		{"-f my.yaml events triage -f", "-f my.yaml events triage --follow"},
		{"-o json logs -f triage", "-o json logs --follow triage"},
		{"--file=logs status -f my.yaml", "--file=logs status -f my.yaml"},
		{"send events -f my.yaml", "send events -f my.yaml"},
		{"-f events validate", "-f events validate"},
		{"-f", "-f"},
		{"", ""},
	}
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		if got := strings.Join(withFollow(args), " "); got != tt.want || strings.Join(args, " ") != tt.args {
			t.Errorf("%q became %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestDashFNamesNoFileWhereItFollows: it was "cannot find heartbeat.yaml", with the hint to
// write what was written.
func TestDashFNamesNoFileWhereItFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	for _, command := range follows {
		for _, file := range []string{"heartbeat.yaml", "../x/fleet.yml", w.dir + "/heartbeat.yaml"} {
			o := w.run(command, "-f", file)
			if o.status != exitUsage || !strings.Contains(o.stderr, "-f behind "+command+" means --follow") || !strings.Contains(o.stderr, "heartbeat --file "+file+" "+command) {
				t.Errorf("%s -f %s: %+v", command, file, o)
			}
		}
		if o := w.run(command, "-fheartbeat.yaml"); o.status == exitUsage {
			t.Errorf("%s -fheartbeat.yaml: %+v", command, o)
		}
	}
}

// A stop lets the turn finish, and the entries behind it wait; asked twice it
// ends the turn, whose entry waits, too. That holds for each way to ask, and for
// a run that would have ended by itself: those were cut off in the middle of
// their turns, and ended by SIGHUP.
func TestStopInTwoStages(t *testing.T) {
	t.Parallel()
	const slow = `{"rules": [{"match": "slow", "steps": [` + untilLetGo + `, {"reply": "ok"}]}, {"match": "stuck", "steps": [{"hang": true}]}]}`
	for _, tt := range []struct {
		name   string
		run    []string
		prompt string
		asks   []syscall.Signal
		status int
		done   int
	}{
		{"term", nil, "slow", []syscall.Signal{syscall.SIGTERM}, 0, 1},
		{"interrupt twice", nil, "stuck", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 0, 0},
		{"once term", []string{"--once"}, "slow", []syscall.Signal{syscall.SIGTERM}, exitError, 1},
		{"once interrupt", []string{"--once"}, "slow", []syscall.Signal{syscall.SIGINT}, exitError, 1},
		{"once twice", []string{"--once"}, "stuck", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, exitError, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("script.json", slow)
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nshutdown-grace: 5m\nagents:\n  triage:\n    dir: agents/triage\n"+
				"    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n    on-orphan: retry\n")
			w.put("agents/triage/README", "")
			w.ok("send", "triage", tt.prompt)
			w.ok("send", "triage", "second")
			r := w.background(tt.run...)
			until(t, "the turn has begun", func() bool {
				return strings.Contains(w.run("logs", "triage").stdout, "> "+tt.prompt)
			})
			for _, sig := range tt.asks {
				if err := r.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				until(t, "the signal was heard", func() bool { return strings.Contains(r.stderr.String(), "turns may finish") })
			}
			if tt.prompt == "slow" { // the run says it before the session has heard it
				until(t, "the session was told", func() bool {
					return strings.Contains(w.get("agents/triage/.heartbeat/session.json"), `"shutdown"`)
				})
			}
			w.letGo()
			if code := r.ended(); code != tt.status {
				t.Errorf("exit status %d, want %d", code, tt.status)
			}
			if a := w.agent("triage"); a.Acknowledged != tt.done || a.Depth.Entries != 2-tt.done {
				t.Errorf("%+v, want %d done and the rest queued", a, tt.done)
			}
		})
	}
}

// TestARunThatEndsByItselfIsReloaded: SIGHUP ended it, and it did not answer.
func TestARunThatEndsByItselfIsReloaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "slow", "steps": [`+untilLetGo+`, {"reply": "ok"}]}]}`)
	fleet := "version: 1\nname: fleet\ndefaults:\n  command: [heartbeat, simulate, --script, " + w.dir + "/script.json]\nagents:\n  triage:\n    dir: agents/triage\n"
	w.put("heartbeat.yaml", fleet)
	w.put("agents/triage/README", "")
	w.put("agents/builder/.heartbeat/inbox.jsonl", "of another agent\n")
	w.ok("send", "triage", "slow")
	r := w.background("--once")
	w.put("heartbeat.yaml", fleet+"  builder:\n    dir: agents/builder\n")
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "it has another agent", func() bool { return strings.Contains(w.ok("events"), "added: builder") })
	w.letGo()
	if code := r.ended(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for _, name := range []string{"triage", "builder"} {
		if a := w.agent(name); a.Acknowledged != 1 {
			t.Errorf("%s: %+v, want its entry done", name, a)
		}
	}
}

// TestAPromptForAHeldAgentIsSaidToWait: send said that it is queued, and no more.
func TestAPromptForAHeldAgentIsSaidToWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	r := w.background()
	w.ok("pause", "triage")
	until(t, "send says that it waits", func() bool {
		return strings.Contains(w.ok("send", "triage", "anything"), "\nIt waits: paused by a person for ") && strings.HasSuffix(w.ok("send", "triage", "more"), "s; heartbeat resume triage\n")
	})
	w.ok("resume", "triage")
	until(t, "send says no more that it waits", func() bool { return !strings.Contains(w.ok("send", "triage", "anything"), "It waits") })
	if status := r.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
}
