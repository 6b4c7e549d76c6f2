package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheWayLeadsThroughDoctor: who followed the hints from init on came to a run
// that could not work, and only then to the command that says why.
func TestTheWayLeadsThroughDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.ok("init", "-f", "mine.yaml"); !strings.Contains(out, "    heartbeat -f mine.yaml apply ") ||
		strings.Index(out, " doctor ") < strings.Index(out, " apply ") || strings.Index(out, " doctor ") > strings.Index(out, " run ") {
		t.Errorf("init:\n%s", out)
	}
	w.put("fleet.yaml", oneAgent)
	const next = "\nNext: heartbeat -f fleet.yaml doctor says what else would keep a session from working\n"
	if out := w.ok("apply", "-f", "fleet.yaml", "--dry-run"); strings.Contains(out, "Next:") {
		t.Errorf("apply --dry-run:\n%s", out)
	}
	if out := w.ok("apply", "-f", "fleet.yaml"); !strings.HasSuffix(out, next) {
		t.Errorf("apply:\n%s", out)
	}
	if out := w.ok("apply", "-f", "fleet.yaml"); strings.Contains(out, "Next:") {
		t.Errorf("apply where nothing is left to do:\n%s", out)
	}
}

// TestTheFirstFailureExplainsItself: what keeps an agent from its first session
// stands in run's log as it begins, in status and at the end of run --once, each
// time with what to do, once.
func TestTheFirstFailureExplainsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere") // no client
	w.put("fleet.yaml", strings.Replace(oneAgent, "    dir:", "    env-file: gone.env\n    dir:", 1))
	w.run("apply", "-f", "fleet.yaml")
	w.ok("send", "-f", "fleet.yaml", "triage", "hello")
	once := w.run("run", "-f", "fleet.yaml", "--once")
	if once.status != exitError || strings.Contains(once.stdout+once.stderr, "cannot feed") || strings.Contains(once.stdout, "open ") ||
		!strings.Contains(once.stdout, `! triage: held when its last run ended: cannot read env-file "`) ||
		!strings.Contains(once.stdout, "\n    do    write ") ||
		!strings.Contains(once.stderr, "\nhint: write ") {
		t.Errorf("run --once: %+v", once)
	}
}

// TestWhatCannotWorkIsSaidWhenTheRunBegins: an agent that works at night was found
// at night to have no client, or a directory that nobody trusts.
func TestWhatCannotWorkIsSaidWhenTheRunBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere")
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	r := w.background()
	const more = "it is not found (and 3 more: heartbeat doctor triage)"
	until(t, "the log says what waits for a person", func() bool {
		return strings.Contains(r.stderr.String(), "WARN agent held agent=triage") && strings.Contains(r.stderr.String(), more)
	})
	if log := r.stderr.String(); strings.Count(log, more) != 1 || strings.Count(log, "npm install") != 1 {
		t.Errorf("it says so twice:\n%s", log)
	}
	if out := w.ok("status"); !strings.Contains(out, more) || !strings.Contains(out, "by itself") {
		t.Errorf("status:\n%s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if o := w.run("run", "--once"); o.status != 0 {
		t.Errorf("nothing is queued, and run --once says %+v", o)
	}
}

// TestStatusOfAStoppedFleetSaysWhatCannotWork: it said "2 stopped", and what
// everybody else knew of only doctor told.
func TestStatusOfAStoppedFleetSaysWhatCannotWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere")
	w.put("heartbeat.yaml", oneAgent+"  other: {dir: agents/other, command: [heartbeat, simulate]}\n")
	w.ok("apply")
	out := w.ok("status")
	if !strings.Contains(out, `! triage: no session could start: command "claude": it is not found (and `) ||
		!strings.Contains(out, "npm install") || strings.Contains(out, "! other") {
		t.Errorf("status:\n%s", out)
	}
}

// TestValidateMissesTheClient: of agents without command: it said nothing, and the run
// held them.
func TestValidateMissesTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere")
	w.put("heartbeat.yaml", oneAgent+"  other: {dir: agents/other, command: [heartbeat, simulate]}\n")
	if o := w.run("validate"); o.status != 0 || !strings.Contains(o.stderr, "warning: claude, which triage would run, is not found in PATH (npm install") {
		t.Errorf("%+v", o)
	}
	w.put("heartbeat.yaml", oneAgent+"    command: [claude]\n")
	if o := w.run("validate"); strings.Count(o.stderr, "is not found in PATH") != 1 {
		t.Errorf("where the file says so itself: %+v", o)
	}
}

// TestEachAgentWhoseClientIsMissingIsNamedByItsOwn: one with another path to the client was
// said to run claude from PATH, and apply said nothing.
func TestEachAgentWhoseClientIsMissingIsNamedByItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere")
	w.put("heartbeat.yaml", oneAgent+"  other: {dir: agents/other, command: [/opt/nope/claude]}\n")
	for _, command := range []string{"validate", "apply"} {
		o := w.run(command)
		if o.status != 0 || strings.Count(o.stderr, "claude, which triage would run, is not found in PATH (npm install") != 1 ||
			strings.Count(o.stderr, "agents.other.command[0]: /opt/nope/claude is not there") != 1 {
			t.Errorf("%s: %+v", command, o)
		}
	}
}

// TestStatusForgetsWhatWasMended: it showed what the last run had held the agent for,
// and what to do about it, when that was done.
func TestStatusForgetsWhatWasMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "    dir:", "    command: [heartbeat, simulate]\n    env-file: gone.env\n    dir:", 1))
	w.run("apply")
	w.run("send", "triage", "hello")
	w.run("run", "--once")
	if out := w.run("status").stdout; !strings.Contains(out, "no session could start: cannot read env-file") {
		t.Errorf("before:\n%s", out)
	}
	w.put("gone.env", "A=b\n")
	if err := os.Chmod(filepath.Join(w.dir, "gone.env"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.run("status").stdout; strings.Contains(out, "env-file") {
		t.Errorf("after:\n%s", out)
	}
}

// TestAFileWithProblemsKeepsItsWarnings: validate told them in a second round, and
// had a misspelt key twice, the misleading half first.
func TestAFileWithProblemsKeepsItsWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nagents:\n  a: {directory: a, max-restarts: 0, trigger: {cron: '@daily', text: hi}}\n")
	o := w.run("validate")
	if o.status != exitConfig || !strings.Contains(o.stderr, "warning: heartbeat.yaml:3:35: agents.a.max-restarts: ") ||
		!strings.Contains(o.stderr, "2 problems") || strings.Contains(o.stderr, "is missing") ||
		!strings.Contains(o.stderr, "agents.a.directory: unknown key (did you mean dir?)") || !strings.Contains(o.stderr, "agents.a.trigger.text: unknown key (did you mean prompt?)") {
		t.Errorf("%+v", o)
	}
	if o := w.run("validate", "-o", "json"); !strings.Contains(o.stdout, `"severity":"error"`) || !strings.Contains(o.stdout, `"severity":"warning"`) {
		t.Errorf("%+v", o)
	}
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n    max-restarts: 0\n")
	w.run("apply")
	r := w.background()
	if o := w.run("reload"); o.status != 0 || !strings.Contains(o.stderr, "agents.triage.max-restarts: ") {
		t.Errorf("reload: %+v", o)
	}
	r.stop()
	// While the file cannot be used, reload says so, and still finds the run.
	w.put("heartbeat.yaml", "version: 1\nagents:\n  a: {directory: a}\n")
	if o := w.run("reload"); o.status == 0 || !strings.Contains(o.stderr, "did you mean dir?") {
		t.Errorf("reload of a broken file: %+v", o)
	}
}

// TestWhatPeopleMeantIsNamed: each of them ended in a list of everything else.
func TestWhatPeopleMeantIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	for line, hint := range map[string]string{
		"dead-letter drop 4f1c":        "heartbeat dead-letter purge ID",
		"dead-letter triage drop 4f1c": "heartbeat dead-letter purge ID",
		"inbox remove 4f1c":            "heartbeat inbox drop ID",
		"replies -f heartbeat.yaml":    "heartbeat --file heartbeat.yaml replies",
	} {
		if o := w.run(strings.Fields(line)...); o.status == 0 || !strings.Contains(o.stderr, "hint: ") || !strings.Contains(o.stderr, hint) {
			t.Errorf("heartbeat %s: %+v", line, o)
		}
	}
}

// TestManyDirectoriesThatAreNotAppliedAreOneLine of doctor, with one command.
func TestManyDirectoriesThatAreNotAppliedAreOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", threeAgents)
	w.ok("apply")
	w.put("heartbeat.yaml", strings.ReplaceAll(strings.ReplaceAll(threeAgents, "{dir:", "{permissions: {allow: [Read]}, dir:"), "    max-restarts", "    permissions: {allow: [Read]}\n    max-restarts"))
	o := w.run("doctor")
	if strings.Count(o.stdout, "not-applied") != 1 || !strings.Contains(o.stdout, "the directories of 3 agents are not as declared (") ||
		!strings.Contains(o.stdout, "heartbeat apply\n") {
		t.Errorf("%+v", o)
	}
}

// TestAQueueThatAsksKeepsItsDeadLetters in status, which said "?".
func TestAQueueThatAsksKeepsItsDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n")
	w.ok("apply")
	w.ok("send", "triage", "--id", "one", "hello")
	w.ok("inbox", "drop", "one")
	w.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	w.put("agents/triage/.heartbeat/.inbox-meta", "rubbish")
	w.put("agents/triage/.heartbeat/inbox.jsonl", "again\n")
	out := w.ok("status")
	if !strings.Contains(out, "heartbeat answer triage") || !strings.Contains(out, "1 dead letter") {
		t.Errorf("status:\n%s", out)
	}
}

// TestStatusSaysThatARunStops: since when, what it waits for, until when.
func TestStatusSaysThatARunStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules":[{"steps":[{"tool":"Bash","command":"touch ../../begun; until [ -e ../../end ]; do sleep 0.05; done"},{"reply":"done"}]}],"think":"20ms"}`)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate, --script, ../../script.json]\n    permissions: {allow: [Bash]}\n")
	w.ok("apply")
	w.ok("send", "triage", "look")
	r := w.background()
	// A session runs from its client's start on, and is ended at once until its turn has begun.
	until(t, "a turn has begun", func() bool { _, err := os.Stat(filepath.Join(w.dir, "begun")); return err == nil })
	until(t, "status knows", func() bool { return strings.Contains(w.ok("status"), "send ") && w.agent("triage").State == "running" })
	stop := w.command("stop") // which waits for the end
	if err := stop.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "status says so", func() bool {
		out := w.ok("status")
		return strings.Contains(out, "stopping for ") && strings.Contains(out, "it waits for the sessions of 1 agent (triage), at most another ") &&
			strings.Contains(out, "heartbeat stop --now")
	})
	if out := w.ok("send", "triage", "more"); !strings.Contains(out, "\nIt waits: the scheduler is stopping; heartbeat run   # when it has ended\n") {
		t.Errorf("send: %s", out)
	}
	if o := w.run("resume", "triage"); o.status != exitError || o.stderr != `heartbeat: cannot resume agent "triage": the scheduler is stopping`+"\nhint: heartbeat status says what its end waits for; then heartbeat run starts another one\n" {
		t.Errorf("resume: %+v", o)
	}
	w.put("end", "")
	if code := r.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if err := stop.Wait(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
