package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestATriggerThatCannotFireIsTheReason (the summary of run --once --fire gave
// none): each kind of trigger, in the table and in the message.
func TestATriggerThatCannotFireIsTheReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ trigger, says, first string }{
		"a poll that fails":     {"{poll: [sh, -c, 'echo no ticket server >&2; exit 3']}", "no ticket server", "trigger "},
		"a poll without a file": {"{poll: [./gone.sh]}", "gone.sh", "trigger "},
		"a gate that fails":     {"{cron: '@daily', prompt: x, gate: [sh, -c, 'exit 3']}", "gate", "trigger "},
		"no env-file":           {"{poll: ['true']}\n    env-file: gone.env", "gone.env", "cannot read env-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate]\n    trigger: "+tt.trigger+"\n")
			o := w.run("run", "--once", "--fire")
			_, row, _ := strings.Cut(o.stdout, "\ntriage")
			if o.status != exitError || tt.first == "trigger " && !strings.Contains(row, "-1: ") || !strings.Contains(row, tt.says) ||
				!strings.Contains(o.stderr, "heartbeat: cannot finish: triage: "+tt.first) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestTheTimeInAPromptIsTheTriggers: fired by hand it was the machine's, with
// nanoseconds and the monotonic clock behind it.
func TestTheTimeInAPromptIsTheTriggers(t *testing.T) {
	t.Parallel()
	at := regexp.MustCompile(`At 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+0900 JST\.`)
	for how, fires := range map[string]func(w *world){
		"run --once --fire": func(w *world) { w.run("run", "--once", "--fire") },
		"trigger":           func(w *world) { r := w.background(); w.ok("pause", "triage"); w.ok("trigger", "triage"); r.stop() },
		"its time": func(w *world) {
			r := w.background()
			until(t, "it fires", func() bool { return len(w.queue()) > 0 })
			r.stop()
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "TZ=America/New_York")
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate]\n"+
				"    trigger: {cron: '* * * * * *', seconds: true, overlap: skip, timezone: Asia/Tokyo, prompt: 'At {{.At}}.'}\n")
			fires(w)
			if queue := w.queue(); !at.MatchString(queue) {
				t.Errorf("queued: %s", queue)
			}
		})
	}
}

// queue is what was ever queued for triage.
func (w *world) queue() string {
	w.t.Helper()
	if !slices.Contains(w.names("triage/.heartbeat"), "inbox.jsonl") {
		return ""
	}
	return w.get("triage/.heartbeat/inbox.jsonl")
}

// TestARunOnceThatTakesTooLongSaysSo: its last line said that it cannot go on.
func TestARunOnceThatTakesTooLongSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [sh, -c, exit 3]\n")
	w.put("triage/x", "")
	w.ok("send", "triage", "anything")
	o := w.run("run", "--once", "--once-timeout", "1s")
	if o.status != exitError || !strings.Contains(o.stderr, `heartbeat stopped why="--once-timeout is over"`) ||
		!strings.Contains(o.stderr, "cannot finish: --once-timeout is over; triage: ") {
		t.Errorf("%+v", o)
	}
}

// TestARunOnceThatCannotWorkEndsAtOnce: it tried for as long as it took, and its
// last line did not say what to do. Later each line said it twice.
func TestARunOnceThatCannotWorkEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ command, field, says, do string }{
		"no client":   {"[claude]", "", `command "claude": it is not found`, "npm install"},
		"no program":  {"[gone]", "", `command "gone": it is not found`, "install gone, or correct the command in the file, or PATH"},
		"no x bit":    {"[./plain]", "", `/plain": it is not executable`, "chmod +x "},
		"no trust":    {"[./claude]", "", "is not trusted", "heartbeat apply --trust triage"},
		"no env-file": {"[heartbeat, simulate]", "    env-file: gone.env\n", `cannot read env-file "`, "correct the env-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "PATH=/nowhere")
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: "+tt.command+"\n"+tt.field)
			w.put("home/.claude.json", `{"hasCompletedOnboarding":true}`)
			w.put("triage/x", "")
			w.put("triage/plain", "")
			w.put("plain", "")
			w.put("claude", "")
			if err := os.Chmod(filepath.Join(w.dir, "claude"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.ok("send", "triage", "anything")
			o := w.run("run", "--once")
			if o.status != exitError || !strings.Contains(o.stderr, "heartbeat: cannot finish: triage: ") || !strings.Contains(o.stderr, "\nhint: "+tt.do) &&
				!strings.Contains(o.stderr, ", or "+tt.do) || !strings.Contains(o.stdout, "\n    do    ") || strings.Contains(o.stderr, "ERROR") {
				t.Errorf("%+v", o)
			}
			for line := range strings.Lines(o.stdout + o.stderr) {
				if strings.HasPrefix(line, "heartbeat: cannot finish") && !strings.Contains(line, tt.says) || strings.Count(line, tt.do) > 1 {
					t.Errorf("%q", line)
				}
			}
		})
	}
}

// TestOnceFailsWhereAcceptedPromptsAreLost: somebody emptied the inbox, its prompts became
// dead letters, and the run ended with "0 given up" and exit status 0.
func TestOnceFailsWhereAcceptedPromptsAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n", 1))
	w.ok("apply")
	w.ok("send", "triage", "one")
	w.ok("send", "triage", "two")
	w.shell("> agents/triage/.heartbeat/inbox.jsonl")
	if o := w.run("run", "--once"); o.status != exitError || !strings.Contains(o.stdout, "2 given up") || !strings.Contains(o.stderr, "dead-lettered=2") {
		t.Errorf("%+v", o)
	}
	if o := w.run("run", "--once"); o.status != exitOK {
		t.Errorf("the next one: %+v", o)
	}
}

// TestOnceAfterALostQueue: it ended with 0 although accepted prompts went with their folder.
func TestOnceAfterALostQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n    command: [heartbeat, simulate, --script, "+filepath.Join(w.dir, "script.json")+"]\n    timeout: 5m\n    permissions: {allow: [Bash]}\n")
	w.put("script.json", `{"rules": [{"match": "vanish", "steps": [{"tool": "Bash", "command": "rm -rf .heartbeat"}, {"hang": true}]}, {"steps": [{"reply": "ok"}]}]}`)
	w.ok("apply")
	w.ok("send", "triage", "vanish")
	w.ok("send", "triage", "and this is lost")
	o := w.run("run", "--once", "--once-timeout", "2m")
	if o.status != exitError || !strings.Contains(o.stderr, "cannot finish: triage: ") || strings.Contains(o.stderr, "--once-timeout is over") {
		t.Errorf("%+v", o)
	}
}
