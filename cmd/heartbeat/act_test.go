package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
)

// stuck is a model that never answers a prompt with "stuck" in it.
const stuck = `"rules": [{"match": "stuck", "steps": [{"tool": "Bash", "command": "true"}, {"hang": true}]}]`

// inTurn waits for a turn that has called a tool.
func (f *fleet) inTurn(prompt string) {
	f.t.Helper()
	until(f.t, "a tool was called for "+prompt, func() bool {
		flight := f.inFlight()
		return strings.Contains(flight, prompt) && strings.Contains(flight, `"state":"started"`)
	})
}

// inFlight is the record of the entry in flight, or "".
func (f *fleet) inFlight() string {
	data, err := os.ReadFile(filepath.Join(f.dir, "agents/triage/.heartbeat/.in-flight"))
	if err != nil {
		return ""
	}
	return string(data)
}

// runs waits until the scheduler answers.
func (f *fleet) runs() {
	f.t.Helper()
	until(f.t, "it runs", func() bool { return f.run("status", "-o", "json").status == exitOK && f.fleet().Scheduler.PID > 0 })
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{`+stuck+`}`, "mode: persist")
	f.ok("send", "triage", "--id", "one", "stuck, the first")
	f.ok("send", "triage", "behind it")
	f.inTurn("stuck, the first")
	if o := f.run("cancel", "triage", "--entry", "two"); o.status != exitError || !strings.Contains(o.stderr, `cannot cancel the turn of agent "triage": entry two is not in flight`) {
		t.Errorf("another entry: %+v", o)
	}
	out := f.ok("cancel", "triage", "--entry", "one")
	if !strings.HasPrefix(out, "triage: cancelled; heartbeat dead-letter retry one ") {
		t.Errorf("cancel: %s", out)
	}
	if dead := f.ok("dead-letter", "triage"); !strings.Contains(dead, "one") || !strings.Contains(dead, "cancelled") {
		t.Errorf("dead letters:\n%s", dead)
	}
	f.is("the one behind it is done", func(r *hook.Record) bool { return r.Acknowledged == 1 && r.Phase == hook.Waiting })
	if got := f.ends(); len(got) != 1 || got[0] != "finished (cancelled by a person)" {
		t.Errorf("sessions ended by %q", got)
	}
	if o := f.run("cancel", "triage"); o.status != exitError || o.stdout != "" || !strings.Contains(o.stderr, "no turn runs: its session waits for work") {
		t.Errorf("between turns: %+v", o)
	}

	// What is cancelled and queued again comes behind what is queued.
	f.put("script.json", `{"rules": [{"match": "stuck", "times": 1, "once-file": "`+f.dir+`/once", "steps": [{"tool": "Bash", "command": "true"}, {"hang": true}]}]}`)
	f.ok("restart", "triage")
	f.is("another session", func(r *hook.Record) bool { return r.Phase == hook.Ended })
	f.ok("send", "triage", "stuck, once more")
	f.ok("send", "triage", "the last")
	f.inTurn("stuck, once more")
	if out := f.ok("cancel", "triage", "--retry"); out != "triage: cancelled; the prompt stands at the end of its queue again\n" {
		t.Errorf("cancel --retry: %s", out)
	}
	f.is("both are done", func(r *hook.Record) bool { return r.Acknowledged == 2 && r.Phase == hook.Waiting })
	last, more := strings.Index(f.outbox(), "done: the last"), strings.Index(f.outbox(), "done: stuck, once more")
	if last < 0 || more < last || strings.Contains(f.ok("dead-letter", "triage"), "once more") {
		t.Errorf("the outbox:\n%s", f.outbox())
	}
	events := f.ok("events", "triage")
	for _, want := range []string{"cancelled", "restarted", "recovered", "queued-again"} {
		if !strings.Contains(events, want) {
			t.Errorf("events lack %q:\n%s", want, events)
		}
	}
	var r struct {
		Agents []struct{ Agent, Outcome, Why string }
	}
	o := f.run("cancel", "triage", "-o", "json")
	if envelopeOf(t, o); o.status != exitError || !strings.Contains(o.stdout, `"outcome":"nothing"`) {
		t.Errorf("with JSON: %+v, %+v", o, r)
	}
}

// TestWhoCutsATurnOffIsToldWhatFollows: restart --now and stop --now did not say what
// happens to the prompt in flight.
func TestWhoCutsATurnOffIsToldWhatFollows(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{`+stuck+`}`, "on-orphan: retry")
	f.ok("send", "triage", "--id", "one", "stuck, the first")
	f.inTurn("stuck, the first")
	until(t, "the scheduler knows of its session", func() bool { return f.agent("triage").State == "running" })
	if out := f.ok("restart", "triage", "--now"); out != "triage: its session ends now; its prompt one is given again (on-orphan: retry)\n" {
		t.Errorf("restart --now: %s", out)
	}
	until(t, "it is given again, in a session that the scheduler knows of", func() bool {
		return strings.Contains(f.run("inbox", "triage", "show", "one").stdout, "attempt:  2, ") && f.agent("triage").State == "running"
	})
	if out := f.ok("stop", "--now"); !strings.Contains(out, "\ntriage: its turn was cut off; its prompt one is given again by the next run\n") {
		t.Errorf("stop --now: %s", out)
	}
}

// TestCancelOfAClientThatDoesNotGo: it hears no signal, and is killed after
// end-grace with what it has started.
func TestCancelOfAClientThatDoesNotGo(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"ignore-signals": ["TERM", "HUP", "INT"], `+stuck+`}`, "end-grace: 500ms")
	f.ok("send", "triage", "stuck for ever")
	f.inTurn("stuck")
	f.ok("cancel", "triage")
	if dead := f.ok("dead-letter", "triage"); !strings.Contains(dead, "cancelled") {
		t.Errorf("dead letters:\n%s", dead)
	}
}

// TestAWishToCancelOutlivesItsScheduler: the shim has kept it with the entry; the
// next run does not give the prompt again.
func TestAWishToCancelOutlivesItsScheduler(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"ignore-signals": ["TERM", "HUP", "INT"], `+stuck+`}`, "end-grace: 3s", "on-orphan: retry")
	f.ok("send", "triage", "stuck for ever")
	f.inTurn("stuck")
	cancel := f.command("cancel", "triage")
	if err := cancel.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the wish is kept", func() bool { return strings.Contains(f.inFlight(), `"cancel"`) })
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-f.done
	_ = cancel.Wait() // its scheduler has gone
	f.start()
	until(t, "it is a dead letter", func() bool { return strings.Contains(f.run("dead-letter", "triage").stdout, "cancelled") })
	if inbox := f.ok("inbox", "triage"); strings.Contains(inbox, "stuck") {
		t.Errorf("given again:\n%s", inbox)
	}
}

// TestCancelWhileAPersonTypes: the act of a person, so it is carried out; who has
// joined is told why the session ends.
func TestCancelWhileAPersonTypes(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{`+stuck+`}`)
	f.ok("send", "triage", "stuck for ever")
	f.inTurn("stuck")
	child, out := f.sit("attach", "triage")
	f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "wait")
	f.is("and types", func(r *hook.Record) bool { return !r.TypedAt.IsZero() })
	f.ok("cancel", "triage")
	if code := exited(t, child); code != 0 || !strings.Contains(out.String(), "cancelled by a person") {
		t.Errorf("status %d: %q", code, out.String())
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": [{"match": "slow", "steps": [`+untilLetGo+`, {"reply": "done: slow"}]}, {"match": "stuck", "steps": [{"tool": "Bash", "command": "true"}, {"hang": true}]}]}`, "mode: persist")
	f.runs()
	if out := f.ok("restart", "triage"); out != "triage: it has no session; the next prompt starts one\n" {
		t.Errorf("without a session: %s", out)
	}
	f.ok("send", "triage", "slow")
	first := f.is("a turn", func(r *hook.Record) bool { return r.Phase == hook.Turn })
	f.ok("send", "triage", "behind it")
	if out := f.ok("restart", "triage"); out != "triage: its session ends after its turn; queued prompts start another one\n" {
		t.Errorf("in a turn: %s", out)
	}
	f.letGo()
	second := f.is("the turn was finished, and another session goes on", func(r *hook.Record) bool {
		return r.Session != first.Session && r.Acknowledged == 1 && r.Phase == hook.Waiting
	})
	if !strings.Contains(f.outbox(), "done: slow") || !strings.Contains(f.outbox(), "done: behind it") {
		t.Errorf("the outbox:\n%s", f.outbox())
	}
	f.ok("send", "triage", "stuck")
	f.inTurn("stuck")
	if out := f.ok("restart", "--all", "--now"); !strings.HasPrefix(out, "triage: its session ends now; its prompt ") || !strings.HasSuffix(out, "otherwise it is given again (on-orphan: deadletter)\n") {
		t.Errorf("at once: %s", out)
	}
	until(t, "its prompt goes by on-orphan", func() bool { return strings.Contains(f.run("dead-letter", "triage").stdout, "interrupted") })
	f.ok("pause", "triage")
	until(t, "it is held", func() bool { return f.agent("triage").State == "held" })
	if out := f.ok("restart", "triage"); !strings.Contains(out, "triage: it has no session: it is paused (paused by a person); heartbeat resume triage") {
		t.Errorf("of a paused agent: %s", out)
	}
	if got := f.ends(); len(got) != 2 || got[0] != "finished (restarted by a person)" || got[1] != got[0] || second.Session == "" {
		t.Errorf("sessions ended by %q", got)
	}
}

func TestActsWithoutAScheduler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"restart", "triage"}, exitNotRunning, "hint: heartbeat run starts it"},
		{[]string{"cancel", "triage"}, exitNotRunning, "hint: heartbeat recover triage --on-orphan deadletter gives up what is in flight; heartbeat inbox drop ID takes out what is queued"},
		{[]string{"restart"}, exitUsage, "name agents or --all"},
		{[]string{"cancel"}, exitUsage, "<agents> is missing"},
		{[]string{"cancel", "traige"}, exitError, "did you mean triage?"},
	} {
		if o := w.run(tt.args...); o.status != tt.status || o.stdout != "" || !strings.Contains(o.stderr, tt.stderr) {
			t.Errorf("%q: %+v", tt.args, o)
		}
	}
}

// TestPauseBeforeARun: it was refused without a scheduler; who wanted to look at an
// agent first had to let it start.
func TestPauseBeforeARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	if out := w.ok("pause", "triage"); out != "triage: paused; heartbeat run starts nothing for it until heartbeat resume triage\n" {
		t.Errorf("pause: %s", out)
	}
	w.ok("send", "triage", "What is new?")
	if out := w.ok("status"); !strings.Contains(out, "paused by a person for ") {
		t.Errorf("status: %s", out)
	}
	// A new name is the same agent.
	w.put("heartbeat.yaml", strings.ReplaceAll(simulated, "  triage:\n", "  sorter:\n"))
	if o := w.run("run", "--once"); o.status != exitError || !strings.Contains(o.stderr, "paused by a person") {
		t.Errorf("run --once: %+v", o)
	}
	if out := w.ok("events"); !strings.Contains(out, "by a person, for the next run") {
		t.Errorf("events: %s", out)
	}
	if out := w.ok("resume", "--all"); out != "sorter: resumed; the next run starts it\n" {
		t.Errorf("resume: %s", out)
	}
	if out := w.ok("status"); strings.Contains(out, "paused") || strings.Contains(out, "held when") {
		t.Errorf("status after resume: %s", out)
	}
	w.run("run", "--once")
	if a := w.agent("sorter"); a.Acknowledged != 1 {
		t.Errorf("%+v", a)
	}
}

// TestAnOldFleetIsResumedBeforeItsFirstRun: of a fleet of an earlier version, whose pauses were
// in a file, resume said that nothing ran it.
func TestAnOldFleetIsResumedBeforeItsFirstRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	w.put("state/fleet/paused.json", `{"since":{"triage":"2026-01-01T00:00:00Z"}}`)
	w.put("state/fleet/holds/triage.json", `{"since":"2026-01-01T00:00:00Z","why":"4 failures"}`)
	if out := w.done("resume", "triage"); out != "triage: no longer paused; resumed; the next run starts it\n" && out != "triage: resumed; the next run starts it\n" {
		t.Errorf("resume: %s", out)
	}
	for _, name := range []string{"paused.json", "holds/triage.json"} {
		if w.get("state/fleet/before-store/"+name) == "" {
			t.Errorf("%s is not kept", name)
		}
	}
	w.ok("send", "triage", "hello")
	w.run("run", "--once")
	if a := w.agent("triage"); a.Acknowledged != 1 {
		t.Errorf("%+v", a)
	}
}

// TestAnIDThatWasAcceptedWithAnotherText: send said that it is accepted already, and
// the other prompt was gone without a word.
func TestAnIDThatWasAcceptedWithAnotherText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	w.ok("send", "triage", "--id", "k", "the first text")
	if out := w.ok("send", "triage", "--id", "k", "the first text\n"); out != "already accepted: k\n" {
		t.Errorf("the same text: %s", out)
	}
	differs := func(when string) {
		t.Helper()
		for _, more := range [][]string{nil, {"--wait"}} {
			o := w.run(append([]string{"send", "triage", "--id", "k", "another text"}, more...)...)
			if o.status != exitError || o.stdout != "" || !strings.Contains(o.stderr, `cannot queue the prompt: "k" was accepted before, with another text`) {
				t.Errorf("%s, %q: %+v", when, more, o)
			}
		}
		o := w.run("send", "triage", "--id", "k", "another text", "-o", "json")
		if envelopeOf(t, o); o.status != exitError || !strings.Contains(o.stdout, `"duplicate":true,"differs":true`) {
			t.Errorf("%s, with JSON: %+v", when, o)
		}
	}
	differs("queued")
	w.run("run", "--once")
	differs("done")
	w.ok("send", "triage", "--id", "d", "dropped")
	w.ok("inbox", "triage", "drop", "d")
	if o := w.run("send", "triage", "--id", "d", "other"); o.status != exitError || !strings.Contains(o.stderr, "another text") {
		t.Errorf("dropped: %+v", o)
	}
	if lines := strings.Count(w.get("agents/triage/.heartbeat/inbox.jsonl"), "another text"); lines != 0 {
		t.Errorf("%d lines with the other text were queued", lines)
	}
}

// TestNamesOfHeartbeatRs: links to the program act as the programs of heartbeat-rs.
func TestNamesOfHeartbeatRs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	self := testbed.Program(t, "heartbeat")
	for _, name := range []string{"heartbeat-launch", "heartbeat-stop"} {
		if err := os.Symlink(self, filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(stdin string, argv ...string) (string, int) {
		cmd := w.command()
		cmd.Path, cmd.Args, cmd.Stdin = filepath.Join(w.dir, argv[0]), argv, strings.NewReader(stdin)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("", "heartbeat-launch", "--cwd", ".", "--timeout", "60", "--exit-signal", "done", "--", "sh", "-c", "stty size; touch done; sleep 60"); code != 0 || out != "50 200\r\n" {
		t.Errorf("heartbeat-launch: %d %q", code, out)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "done")); err == nil {
		t.Error("the exit signal was obeyed, and stays")
	}
	if out, code := run("", "heartbeat-launch", "--", "sh", "-c", "exit 200"); code != 123 {
		t.Errorf("heartbeat-launch: %d %q", code, out)
	}
	w.put("inbox.jsonl", "first\n")
	if out, code := run(`{"hook_event_name":"Stop"}`, "heartbeat-stop", "--inbox", "inbox.jsonl"); code != 0 || out != `{"decision":"block","reason":"first"}`+"\n" {
		t.Errorf("heartbeat-stop: %d %q", code, out)
	}
	if out, code := run("", "heartbeat-stop", "recover", "--inbox", "inbox.jsonl", "--on-orphan", "drop"); code != 0 {
		t.Errorf("heartbeat-stop recover: %d %q", code, out)
	}
	if out, code := run("", "heartbeat-stop"); code != 1 || !strings.Contains(out, "--inbox is required") {
		t.Errorf("heartbeat-stop without flags: %d %q", code, out)
	}
}

// TestAgentDir: sessions, polls and gates have the directory by the name that scripts
// for heartbeat-rs know, and not that of who has started the run.
func TestAgentDir(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "AGENT_DIR=/somewhere/else")
	w.put("script.json", `{"rules": [{"match": "", "steps": [{"tool": "Bash", "command": "echo $AGENT_DIR > session"}, {"reply": "ok"}]}]}`)
	w.put("next.sh", "#!/bin/sh\necho $AGENT_DIR > polled\necho look\n")
	w.put("gate.sh", "#!/bin/sh\necho $AGENT_DIR > gated\n")
	for _, name := range []string{"next.sh", "gate.sh"} {
		if err := os.Chmod(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.put("heartbeat.yaml", "version: 1\nagents:\n  a: &a\n    dir: agents/a\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
		"    permissions: {allow: [Bash]}\n    env-allow: [HOME]\n    trigger: {poll: [./next.sh], every: 1h, gate: [./gate.sh]}\n")
	w.put("agents/a/README", "")
	w.run("run", "--once", "--fire")
	for _, name := range []string{"polled", "gated", "session"} {
		if got := strings.TrimSpace(w.get("agents/a/" + name)); got != filepath.Join(w.dir, "agents/a") {
			t.Errorf("%s: AGENT_DIR is %q", name, got)
		}
	}
}

// TestPauseForATime, before a run and in it: it ends by itself, is shown with its end,
// and is replaced by the next.
func TestPauseForATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	if out := w.ok("pause", "triage", "--for", "1h"); !strings.HasPrefix(out, "triage: paused until ") || !strings.Contains(out, "nothing for it until then, or until heartbeat resume triage") {
		t.Errorf("pause: %s", out)
	}
	if out := w.ok("status"); !strings.Contains(squeeze(out), "(another 59m") && !strings.Contains(squeeze(out), "(another 1h") {
		t.Errorf("status: %s", out)
	}
	w.ok("send", "triage", "What is new?")
	r := w.background()
	until(t, "it is held", func() bool { return w.agent("triage").State == "held" })
	if o := w.run("pause", "triage", "--for", "0s"); o.status != exitUsage || !strings.Contains(o.stderr, "--for must be more than 0") {
		t.Errorf("for no time: %+v", o)
	}
	if out := w.ok("pause", "--all", "--for", "2s"); !strings.HasPrefix(out, "triage: paused until ") {
		t.Errorf("pause again: %s", out)
	}
	until(t, "its prompt is done", func() bool { return w.agent("triage").Acknowledged == 1 })
	if out := w.ok("events"); !strings.Contains(out, "its pause is over") {
		t.Errorf("events: %s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	w.ok("pause", "triage", "--for", "1ms")
	until(t, "it is over without a scheduler", func() bool { return !strings.Contains(w.ok("status"), "paused") })
}
