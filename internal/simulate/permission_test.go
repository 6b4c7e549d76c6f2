package simulate

import (
	"fmt"
	"strings"
	"testing"
)

const touchRule = `[{"match": "go", "steps": [{"tool": "Bash", "command": "touch $LAB/ran"}, {"reply": "after"}]}]`

// What lets a tool run, what refuses it, and what aborts the turn.
func TestPermissions(t *testing.T) {
	t.Parallel()
	answer := func(decision string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":` + decision + `}}'`
	}
	pre := func(decision string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + decision + `","permissionDecisionReason":"why"}}'`
	}
	tests := map[string]struct {
		mode, allow, event, sh string
		runs                   bool
		events                 string // after UserPromptSubmit
	}{
		"dontAsk refuses":          {"dontAsk", "", "", "", false, "PreToolUse Stop"},
		"dontAsk, allowed":         {"dontAsk", "Bash", "", "", true, "PreToolUse PostToolUse Stop"},
		"dontAsk, allowed prefix":  {"dontAsk", "Bash(touch:*)", "", "", true, "PreToolUse PostToolUse Stop"},
		"dontAsk, another command": {"dontAsk", "Bash(git *)", "", "", false, "PreToolUse Stop"},
		"dontAsk, hook allows":     {"dontAsk", "", "PreToolUse", pre("allow"), true, "PreToolUse PostToolUse Stop"},
		"hook denies":              {"dontAsk", "Bash", "PreToolUse", pre("deny"), false, "PreToolUse Stop"},
		"hook exits 2":             {"dontAsk", "Bash", "PreToolUse", "echo no >&2; exit 2", false, "PreToolUse Stop"},
		"auto, simple":             {"auto", "", "", "", true, "PreToolUse PostToolUse Stop"},
		"acceptEdits":              {"acceptEdits", "", "", "", true, "PreToolUse PostToolUse Stop"},
		"asked, allowed":           {"manual", "", "PermissionRequest", "sleep 0.2; " + answer(`{"behavior":"allow"}`), true, "PreToolUse PermissionRequest PostToolUse Stop"},
		"asked, denied":            {"manual", "", "PermissionRequest", answer(`{"behavior":"deny","message":"not now"}`), false, "PreToolUse PermissionRequest Stop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(touchRule)
			if test.allow != "" {
				l.set("permissions", map[string]any{"allow": []string{test.allow}})
			}
			if test.event != "" {
				l.on(test.event, test.sh)
			}
			c := l.start("--permission-mode", test.mode, "--", "go")
			c.untilFired("Stop", 1)
			if got := l.exists("ran"); got != test.runs {
				t.Errorf("the tool ran: %v", got)
			}
			if got := strings.Join(l.events()[2:], " "); got != test.events {
				t.Errorf("hooks %s, want %s", got, test.events)
			}
			if got := len(l.requests()); got != 2 {
				t.Errorf("%d requests, want 2: the refusal is a result", got)
			}
		})
	}
}

// TestATaskInAFileIsReadFirst, without a rule; where it may not be, the model answers what it
// was told.
func TestATaskInAFileIsReadFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deny    []string
		outside bool
		ran     bool
	}{
		"read":               {ran: true},
		"denied":             {deny: []string{"Read"}},
		"outside the folder": {outside: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(touchRule).set("permissions", map[string]any{"allow": []string{"Bash"}, "deny": c.deny})
			file := "work/a \"task\".txt"
			if c.outside {
				file = "task.txt"
			}
			client := l.start("--permission-mode", "dontAsk", "--", fmt.Sprintf("It is in the file %q, which has 2 bytes.", l.write(file, "go")))
			client.untilFired("Stop", 1)
			if got := l.exists("ran"); got != c.ran {
				t.Errorf("the task was done: %v", got)
			}
			if tools := l.fired("PreToolUse"); tools[0]["tool_name"] != "Read" {
				t.Errorf("the first tool: %v", tools[0])
			}
		})
	}
}

// A question to a person hangs, with a Notification after a while; exit 2 of
// a PermissionRequest hook is no answer; a key is.
func TestPermissionDialog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keys string
		runs bool
	}{{"\r", true}, {"2", false}, {"\x1b", false}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(touchRule, `"ask-after": "20ms"`).on("PermissionRequest", "exit 2")
			c := l.start("--permission-mode", "default", "--", "go")
			n := c.untilFired("Notification", 1)
			if n["notification_type"] != "permission_prompt" || n["message"] != "Claude needs your permission" || n["permission_mode"] != nil {
				t.Errorf("Notification %v", n)
			}
			if p := c.untilFired("PermissionRequest", 1); p["tool_use_id"] != nil || p["tool_name"] != "Bash" {
				t.Errorf("PermissionRequest %v", p)
			}
			c.keys(test.keys)
			if test.runs {
				c.untilFired("Stop", 1)
			} else {
				c.untilSeen("Interrupted")
				c.keys("next\r")
				c.until("the next prompt", func() bool { return len(l.requests()) == 2 })
				c.untilFired("Stop", 1)
			}
			if got := l.exists("ran"); got != test.runs {
				t.Errorf("the tool ran: %v", got)
			}
		})
	}
}

// deny with interrupt aborts the turn: no Stop, no StopFailure, and no
// idle_prompt.
func TestPermissionInterrupt(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(touchRule, `"idle-after": "1ms"`)
	l.on("PermissionRequest", `echo '{"hookSpecificOutput":{"decision":{"behavior":"deny","interrupt":true}}}'`)
	c := l.start("--permission-mode", "default", "--", "go")
	c.untilSeen("Interrupted")
	c.keys("next\r")
	c.untilFired("Stop", 1)
	if got := strings.Join(l.events()[2:6], " "); got != "PreToolUse PermissionRequest UserPromptSubmit Stop" {
		t.Errorf("hooks %s", got)
	}
}

// Auto mode hangs on a compound command, and no PermissionRequest says so.
func TestAutoModeDialog(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"tool": "Bash", "command": "true && touch $LAB/ran"}]}]`, `"ask-after": "20ms"`)
	c := l.start("go")
	if n := c.untilFired("Notification", 1); n["notification_type"] != "agent_needs_input" {
		t.Errorf("Notification %v", n)
	}
	if len(l.fired("PermissionRequest")) != 0 || l.exists("ran") {
		t.Errorf("hooks %v", l.events())
	}
	c.term()
}

// A failing command is PostToolUseFailure, with its output for the model.
func TestToolFailure(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"tool": "Bash", "command": "echo out && exit 3"}]}]`)
	c := l.start("--permission-mode=dontAsk", "--allowedTools=Bash", "go")
	c.untilFired("Stop", 1)
	p := l.fired("PostToolUseFailure")[0]
	if p["error"] != "Exit code 3\nout" || p["is_interrupt"] != false {
		t.Errorf("payload %v", p)
	}
}

func TestRuleMatches(t *testing.T) {
	t.Parallel()
	call := toolCall{name: "Bash", bash: &bashInput{Command: "git log --oneline"}}
	for rule, want := range map[string]bool{
		"Bash": true, "Bash(*)": true, "Bash(git:*)": true, "Bash(git *)": true, "Bash(git log --oneline)": true,
		"*": true, "Read": false, "Bash(git)": false, "Bash(gi:*)": false, "Bash(npm *)": false, "Bash(git log)": false,
	} {
		if got := ruleMatches(rule, call); got != want {
			t.Errorf("%s: %v", rule, got)
		}
	}
}
