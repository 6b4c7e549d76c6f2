package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/settings"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/approval"
)

// allowedToSessions are the command lines that an agent's session may run, with the
// reason. All others are acts of a person.
var allowedToSessions = map[string]string{
	"init": "writes a new file", "validate": "looks", "diff": "looks", "status": "looks", "history": "looks", "usage": "looks", "series": "looks",
	"events": "looks", "logs": "looks", "replies": "looks", "next": "looks", "screen": "looks", "doctor": "looks", "explain": "looks", "help": "looks",
	"schema": "looks", "completion": "looks", "man": "looks", "version": "looks", "notify log": "looks", "page tokens": "looks", "service status": "looks", "service print": "looks",
	"inbox": "looks", "inbox list": "looks", "inbox show": "looks", "dead-letter": "looks", "dead-letter list": "looks", "dead-letter show": "looks", "answer": "looks",
	"send":         "agents send each other prompts",
	"trigger":      "what it queues is declared by a person",
	"pause":        "it only stops, and who did it is shown",
	"notify test":  "it only says that it is a test",
	"run":          "what it does is declared by a person; an agent's session ends with the one that runs it",
	"alive":        "it is for sessions",
	"approval ask": "it is for sessions",
	"backup":       "what it writes, whoever is this user may read",
	"approval":     "looks", "approval list": "looks", "approval show": "looks", "attach --read-only": "looks",
	"launch": "it is no act on a fleet", "simulate": "it is no act on a fleet",
}

// actionsOf are those of the commands that have some, and which are an argument.
var actionsOf = map[string][]string{
	"approval": {"", "list", "show", "approve", "reject", "ask"}, "service": {"print", "install", "uninstall", "status"}, "notify": {"test", "log"},
	"inbox": {"", "list", "show", "drop"}, "dead-letter": {"", "list", "show", "retry", "purge"}, "answer": {"", "start"}, "doctor": {"", "--fix"},
	"page":   {"link", "token", "tokens", "revoke --all"},
	"attach": {"", "--read-only"}, "apply": {"", "--trust"}, "send": {"", "--until-check true"},
}

// argumentsOf are arguments that a command line needs, beside its action.
func argumentsOf(command, action string) []string {
	switch {
	case command == "approval" && action == "ask":
		return []string{"Deploy?"}
	case command == "approval" && (action == "" || action == "list"), command == "service", command == "notify":
		return nil
	case command == "send":
		return []string{"triage", "hello"}
	case command == "answer":
		return nil // the agent stands before the answer
	case action == "show", action == "retry", action == "purge", action == "drop", command == "approval":
		return []string{"4f1c02d3"}
	}
	return nil
}

// TestWhatSessionsMayNotDo walks all commands: what is no act of a person is listed
// above, and everything else is refused to a process that has a session's token, in
// whatever place it runs.
func TestWhatSessionsMayNotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	w.ok("apply")
	live, err := json.Marshal(map[string]any{"agent": "triage", "session": "s", "cookie": "token-of-a-session", "shim": map[string]any{"pid": 1 << 30, "start": 1}})
	if err != nil {
		t.Fatal(err)
	}
	w.put("state/fleet/live/s.json", string(live))
	inside := *w
	inside.env = append(slices.Clone(w.env), "HEARTBEAT_SESSION=token-of-a-session")
	refused := map[string]bool{}
	everyCommand(t, func(name string, args []string) {
		actions, ok := actionsOf[name]
		if !ok {
			actions = []string{""}
		}
		for _, action := range actions {
			line := strings.TrimSpace(name + " " + action)
			args := args
			if ok {
				args = append(strings.Fields(name), strings.Fields(action)...)
				if name == "answer" || name == "attach" || name == "apply" {
					args = append(strings.Fields(name), append([]string{"triage"}, strings.Fields(action)...)...)
				}
				args = append(args, argumentsOf(name, action)...)
			}
			if allowedToSessions[line] != "" {
				continue
			}
			o := inside.run(args...)
			refused[line] = o.status == exitError && strings.Contains(o.stderr, `a session of agent "triage" asks, and only a person may`)
			if !refused[line] {
				t.Errorf("heartbeat %s: status %d, %s%s", strings.Join(args, " "), o.status, o.stdout, o.stderr)
			}
		}
	})
	if o := inside.run("--host", "localhost", "resume", "triage"); o.status != exitError || !strings.Contains(o.stderr, "only a person may") {
		t.Errorf("by ssh: %+v", o)
	}
	if o := w.run("resume", "triage"); strings.Contains(o.stderr, "only a person may") {
		t.Errorf("a person is refused: %s", o.stderr)
	}
	for _, rule := range settings.Denials() {
		if act, ok := strings.CutPrefix(rule, "Bash(heartbeat "); ok && !refused[strings.TrimSuffix(act, " *)")] {
			t.Errorf("%s denies what is no act of a person", rule)
		}
	}
	if len(refused) < 18 {
		t.Errorf("only %d acts: %v", len(refused), refused)
	}
}

// TestASessionAsksAndAPersonAnswers: the agent waits without a session, its other
// prompts wait behind it, it cannot answer itself, and the answer is its next prompt.
func TestASessionAsksAndAPersonAnswers(t *testing.T) {
	t.Parallel()
	self := testbed.Program(t, "heartbeat")
	w := newWorld(t)
	step := func(command string) string {
		text, err := json.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"tool": "Bash", "command": %s}`, text)
	}
	w.put("script.json", `{"rules": [
		{"match": "It was approved", "steps": [{"reply": "deployed"}]},
		{"match": "It was rejected", "steps": [{"reply": "left alone"}]},
		{"match": "deploy", "steps": [`+step(`{ `+self+` approval ask "Deploy?" --category destroy --payload plan --host nowhere; id=$(`+self+` approval | grep -Eo '^[0-9a-f]{8}'); for a in approve reject; do
			`+self+` approval $a $id; env -u HEARTBEAT_SESSION setsid -w `+self+` approval $a $id; done
			`+self+` resume triage; `+self+` approval; } >../said 2>&1`)+`, {"reply": "asked"}]},
		{"steps": [{"reply": "other"}]}]}`)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
		"    permissions: {allow: [Bash]}\n    env: {HEARTBEAT_FILE: "+w.dir+"/heartbeat.yaml}\n")
	w.put("triage/plan", "rm -rf \x1b[2J/\n")
	r := w.background()
	asks := func(reply string) string {
		t.Helper()
		w.ok("send", "triage", "deploy")
		until(t, "it waits", func() bool {
			a := w.agent("triage")
			return a.State == "held" && strings.HasPrefix(a.Reason, "waits for approval: Deploy?")
		})
		w.ok("send", "triage", "--id", reply, "something else")
		var list struct {
			Approvals []struct{ ID, State string }
		}
		w.into(&list, "approval")
		if len(list.Approvals) != 1 || list.Approvals[0].State != "asked" {
			t.Fatalf("requests: %+v", list)
		}
		return list.Approvals[0].ID
	}
	id := asks("first")
	if said := w.get("said"); strings.Count(said, `a session of agent "triage" asks, and only a person may`) != 5 || !strings.Contains(said, id+"  triage") || !strings.Contains(said, "asked ("+id+"). End your turn now") {
		t.Errorf("the session was told: %s", said)
	}
	if out := w.ok("approval", "show", id); !strings.Contains(out, "    Deploy? --host nowhere\n") || !strings.Contains(out, "rm -rf \uFFFD[2J/") || !strings.Contains(out, "for:      destroy\n") {
		t.Errorf("shown: %s", out)
	}
	out := squeeze(w.ok("status"))
	for _, want := range []string{"waits for approval for ", "Deploy? --host nowhere (destroy)", "1 prompt waits behind it", "heartbeat approval show " + id} {
		if !strings.Contains(out, want) {
			t.Errorf("status lacks %q: %s", want, out)
		}
	}
	fix := "heartbeat approval approve " + id + " | reject " + id + "\n"
	if o := w.run("resume", "triage"); o.status != exitError || !strings.Contains(o.stdout, "resume does not lift that: "+fix) || strings.Contains(w.ok("events"), "resumed") {
		t.Errorf("a resume of what waits for approval: %+v", o)
	}
	if out := w.ok("restart", "triage"); !strings.HasSuffix(out, fix) {
		t.Errorf("a restart of what waits for approval: %s", out)
	}
	if names, err := os.ReadDir(w.dir + "/state/fleet/live"); err != nil || len(names) != 0 {
		t.Errorf("waiting holds a session: %v, %v", names, err)
	}
	tooLong := func() { // which only the register measures, without the blanks that it drops
		t.Helper()
		o := w.run("approval", "approve", id, "--note", strings.Repeat("x", approval.MaxNote+1))
		if o.status != exitError || !strings.Contains(o.stderr, "the note is too long") || !strings.Contains(o.stderr, "hint: put what is longer into a file") {
			t.Errorf("a note that is too long: %+v", o)
		}
	}
	tooLong()
	if out := w.ok("approval", "approve", id, "--note", "but slowly"); !strings.Contains(out, id+" of triage: approved by a person: but slowly\n") {
		t.Errorf("approve: %s", out)
	}
	until(t, "both are done", func() bool { return w.agent("triage").Acknowledged == 3 })
	if o := w.run("approval", "reject", id); o.status != exitError || !strings.Contains(o.stderr, "it is answered already: approved by a person: but slowly") {
		t.Errorf("a second answer: %+v", o)
	}
	id = asks("second")
	r.stop()
	if out := squeeze(w.ok("status")); !strings.Contains(out, "heartbeat approval show "+id) {
		t.Errorf("status without a run: %s", out)
	}
	tooLong()
	if out := w.ok("approval", "reject", id, "--note", strings.Repeat(" ", approval.MaxNote)+"not today"); !strings.Contains(out, "the next run tells the agent") {
		t.Errorf("reject: %s", out)
	}
	r = w.background()
	until(t, "the rest is done", func() bool { return strings.Count(w.get("triage/.heartbeat/outbox.jsonl"), "\n") == 6 })
	r.stop()
	box := w.get("triage/.heartbeat/outbox.jsonl")
	for _, want := range []string{`"deployed"`, `"left alone"`} {
		if strings.Count(box, want) != 1 {
			t.Errorf("%s is not there once: %s", want, box)
		}
	}
	events := w.ok("events", "triage")
	for _, want := range []string{"approval " + id + " asked, until ", "approval " + id + " rejected: rejected by a person: not today"} {
		if !strings.Contains(events, want) {
			t.Errorf("events lack %q: %s", want, events)
		}
	}
}

// TestWhatHasPassedItsCheckIsApproved: a no is the next iteration, with its note; only
// a yes is done.
func TestWhatHasPassedItsCheckIsApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "not yet", "steps": [{"reply": "better"}]}, {"steps": [{"reply": "built"}]}]}`)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
		"    until: {check: [\"true\"], approve: [release]}\n")
	w.put("triage/README", "")
	r := w.background()
	w.ok("send", "triage", "build it")
	asked := func(former string) (id string) {
		t.Helper()
		until(t, "a person is asked", func() bool {
			var list struct{ Approvals []struct{ ID string } }
			w.into(&list, "approval")
			if len(list.Approvals) == 1 && list.Approvals[0].ID != former {
				id = list.Approvals[0].ID
			}
			return id != ""
		})
		return id
	}
	id := asked("")
	if out := w.ok("approval", "show", id); !strings.Contains(out, "for:      release\n") || !strings.Contains(out, "built") {
		t.Errorf("shown: %s", out)
	}
	until(t, "waiting holds no session", func() bool {
		names, err := os.ReadDir(w.dir + "/state/fleet/live")
		return err == nil && len(names) == 0
	})
	if w.agent("triage").Acknowledged != 0 {
		t.Error("it is done without a yes")
	}
	w.ok("approval", "reject", id, "--note", "not yet")
	id = asked(id)
	if out := w.ok("approval", "show", id); !strings.Contains(out, "better") {
		t.Errorf("shown: %s", out)
	}
	w.ok("approval", "approve", id)
	until(t, "it is done", func() bool {
		data, err := os.ReadFile(w.dir + "/triage/.heartbeat/outbox.jsonl")
		return err == nil && strings.Count(string(data), "release by a person") == 1 && strings.Contains(string(data), `"better"`)
	})
	r.stop()
}
