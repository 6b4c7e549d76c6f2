package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"heartbeat/internal/promise"
)

// fleetName is the fleet's `name:`.
const fleetName = "soak"

// member is one agent of the fleet.
type member struct {
	Name    string
	Policy  promise.Policy
	Trigger string // cron, watch, poll or ""
	Disk    bool   // its directory has a disk of its own
	Guest   bool   // reloads take it out and put it back
	Gate    bool   // the user's Stop hook, where there is one, blocks once for each prompt
	Fields  string // of heartbeat.yaml
}

// members are the kinds of agents in turn.
func members(n int) []*member {
	kinds := []member{
		{Policy: promise.Retry, Gate: true, Fields: "mode: drain"},
		{Policy: promise.DeadLetter, Gate: true, Trigger: "watch", Fields: "mode: persist\nidle-interval: 4s"},
		{Policy: promise.Retry, Disk: true, Fields: "mode: drain\ncontext: entry"},
		{Policy: promise.DeadLetter, Trigger: "poll", Fields: "mode: drain\nkickoff: Read CLAUDE.md\ngroup: few"},
		{Policy: promise.Drop, Fields: "mode: persist\nidle-interval: 3s\ncontext: entry\nsettings: flag"},
		{Policy: promise.DeadLetter, Disk: true, Gate: true, Fields: "mode: persist\nidle-interval: 5s\ngroup: few"},
		{Policy: promise.Retry, Trigger: "cron", Fields: "mode: persist\nidle-interval: 6s\ncontext: resume"},
		{Policy: promise.DeadLetter, Guest: true, Fields: "mode: drain\nsettings: local\ngroup: few"},
		{Policy: promise.Drop, Disk: true, Trigger: "watch", Fields: "mode: drain\nkickoff: Read CLAUDE.md"},
		{Policy: promise.Retry, Fields: "mode: persist\nidle-interval: 5s\non-idle: tick"},
	}
	var all []*member
	for i := range n {
		m := kinds[i%len(kinds)]
		m.Name = fmt.Sprintf("a%02d", i)
		all = append(all, &m)
	}
	return all
}

// fleet is the members and where they live.
type fleet struct {
	Dir     string
	Seed    uint64
	Members []*member
	// StopHook is true where the user's settings have a Stop hook that is not
	// heartbeat's.
	StopHook bool
	// LeftOut says what could not be done here, and why.
	LeftOut []string
}

func (f *fleet) path(name ...string) string {
	return filepath.Join(append([]string{f.Dir}, name...)...)
}

// dirOf is a member's AGENT_DIR.
func (f *fleet) dirOf(m *member) string { return f.path("agents", m.Name) }

func (f *fleet) inboxOf(m *member) string {
	return filepath.Join(f.dirOf(m), ".heartbeat", "inbox.jsonl")
}

// variant is what reloads change.
type variant struct {
	sessions int
	timeouts map[string]string
	without  map[string]bool
	cron     string // "": none
}

func (f *fleet) plainVariant() variant {
	return variant{sessions: max(3, len(f.Members)/3), cron: "* * * * *"}
}

// Bounds of the simulated sessions: short ones, so that a run of a minute sees
// them all.
const (
	entryTimeout  = "8s"
	endGrace      = 2  // seconds
	shutdownGrace = 5  // seconds
	maxAttempts   = 12 // so many, because faults come so often
)

// declare renders heartbeat.yaml.
func (f *fleet) declare(v variant) string {
	var b strings.Builder
	fmt.Fprintf(&b, `version: 1
name: %s
max-sessions: %d
shutdown-grace: %ds
groups:
  few: {max-sessions: 2}
defaults:
  command: [heartbeat, simulate, --home, %q, --script, %q]
  permissions: {allow: [Bash, Agent]}
  timeout: %s
  start-timeout: 15s
  idle-grace: 4s
  background-timeout: 6s
  end-grace: %ds
  max-attempts: %d
  max-restarts: 100000
agents:
`, fleetName, v.sessions, shutdownGrace, f.path("home"), f.path("script.json"), entryTimeout, endGrace, maxAttempts)
	for _, m := range f.Members {
		if v.without[m.Name] {
			continue
		}
		fmt.Fprintf(&b, "  %s:\n    dir: agents/%s\n    on-orphan: %s\n", m.Name, m.Name, m.Policy)
		for line := range strings.Lines(m.Fields + "\n") {
			b.WriteString("    " + line)
		}
		if t := v.timeouts[m.Name]; t != "" {
			fmt.Fprintf(&b, "    timeout: %s\n", t)
		}
		b.WriteString(f.trigger(m, v))
	}
	return b.String()
}

// trigger renders a member's trigger.
func (f *fleet) trigger(m *member, v variant) string {
	switch {
	case m.Trigger == "cron" && v.cron != "":
		return fmt.Sprintf("    trigger: {cron: %q, overlap: queue, prompt: \"cron %s {{.Label}}\"}\n", v.cron, m.Name)
	case m.Trigger == "watch":
		return "    trigger: {watch: [\"in/*.md\"], debounce: 100ms, prompt: \"file {{.Path}}\"}\n"
	case m.Trigger == "poll":
		return "    trigger: {poll: [tail, -n, \"200\", tickets], every: 1s, split: lines, dedupe: content, overlap: queue}\n"
	}
	return ""
}

// gateText is what the user's Stop hook says where it blocks, gateReply what the
// model says to it.
const (
	gateText  = "run the tests first"
	gateReply = "the tests pass"
)

// userSettings are the user's, with a Stop hook that blocks once for each prompt
// of the agents that are gates, and never of the others.
func userSettings() string {
	const command = `[ -e .gate ] || exit 0; n=$(cat .stops 2>/dev/null || echo 0); n=$((n+1)); echo $n >.stops || exit 0; ` +
		`[ $((n % 2)) = 0 ] || { echo "` + gateText + `" >&2; exit 2; }`
	hook := map[string]any{"type": "command", "command": command}
	data, _ := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{hook}}}}})
	return string(data)
}

// script is what the model does with the marks that prompts carry. The first
// uses of the mishaps go wrong, later ones go well.
func (f *fleet) script(mishaps int) string {
	once := func(name string, times int) string {
		return fmt.Sprintf(`"once-file": %q, "times": %d`, f.path("once-"+name), times)
	}
	// Where date is killed, before the shell is, nothing has run yet.
	command := fmt.Sprintf(`at=$(date -u +%%FT%%T.%%NZ) && echo "{\"at\":\"$at\",\"kind\":\"%s\",\"session\":\"$CLAUDE_CODE_SESSION_ID\"}" >> '%s'; sleep 0.1`,
		promise.ToolRan, f.path(toolsFile))
	tool := fmt.Sprintf(`{"tool": "Bash", "command": %q}`, command)
	return fmt.Sprintf(`{"think": "30ms", "transcript-delay": "20ms", "rules": [
 {"match": "`+gateText+`", "steps": [{"reply": "`+gateReply+`"}]},
 {"match": "[crash]", %s, "steps": [{"delay": "50ms"}, {"crash": true}]},
 {"match": "[tool-crash]", %s, "steps": [%s, {"crash": true}]},
 {"match": "[fail]", %s, "steps": [{"fail": "server_error"}]},
 {"match": "[exit]", %s, "steps": [{"exit": 3}]},
 {"match": "[hang]", %s, "steps": [{"hang": true}]},
 {"match": "[tool", "steps": [%s]},
 {"match": "[slow]", "steps": [{"delay": "1500ms"}]},
 {"match": "[background]", "steps": [{"background": "sleep 0.7"}, {"reply": "done: {first}"}]}
]}`, once("crash", mishaps), once("tool-crash", mishaps), tool, once("fail", mishaps), once("exit", mishaps), once("hang", 2), tool)
}

// mishaps are the marks of prompts that interrupt their own session.
var mishaps = []string{"[crash]", "[tool-crash]", "[fail]", "[exit]", "[hang]"}
