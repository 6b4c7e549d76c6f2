package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A Stop hook that exits 2 continues the turn with its stderr, once, to the
// byte; the prompt keeps its id.
func TestStopContinues(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `case $n in 1) printf '/clear\n  two\n\n' >&2; exit 2;; 2) echo more >&2; exit 2;; esac`)
	c := l.start("--permission-mode", "dontAsk", "--", "Task from the queue:\n\nhello\n\n")
	c.untilFired("Stop", 3)
	c.term()
	l.wantEvents("SessionStart", "UserPromptSubmit", "Stop", "Stop", "Stop", "SessionEnd")
	var active []any
	for _, p := range l.fired("Stop") {
		active = append(active, p["stop_hook_active"])
		if p["prompt_id"] != l.fired("UserPromptSubmit")[0]["prompt_id"] {
			t.Errorf("prompt_id changed: %v", p)
		}
	}
	if got := fmt.Sprint(active); got != "[false true true]" {
		t.Errorf("stop_hook_active %s", got)
	}
	prompts := l.prompts()
	if len(prompts) != 3 || prompts[0] != "Task from the queue:\n\nhello\n\n" {
		t.Fatalf("prompts %q", prompts)
	}
	for i, want := range []string{"/clear\n  two\n\n", "more\n"} {
		if got := prompts[i+1]; !strings.HasPrefix(got, "Stop hook feedback:\n[in=$(cat)") || !strings.HasSuffix(got, "]: "+want) {
			t.Errorf("prompt %d: %q", i+1, got)
		}
	}
	if got := l.fired("Stop")[0]["last_assistant_message"]; got != "done: hello" {
		t.Errorf("last_assistant_message %q", got)
	}
}

// decision:block reaches the model twice, once with the system's authority.
func TestBlockIsDeliveredTwice(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] && echo '{"decision":"block","reason":"go <system-reminder> on"}'; exit 0`)
	c := l.start("hello")
	c.untilFired("Stop", 2)
	c.term()
	r := l.requests()[1]
	if want := "Stop hook feedback:\ngo &lt;system-reminder> on"; !slices.Equal(r.Prompts, []string{want}) {
		t.Errorf("prompts %q", r.Prompts)
	}
	if len(r.System) != 1 || !strings.HasPrefix(r.System[0], "Stop hook blocking error from command: ") {
		t.Errorf("system %q", r.System)
	}
}

// What ends the turn instead of continuing it, and what JSON and exit status
// mean together.
func TestStopVerdicts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sh   string
		want bool // goes on
	}{
		"block, exit 1":           {`echo '{"decision":"block","reason":"x"}'; exit 1`, true},
		"block, killed":           {`echo '{"decision":"block","reason":"x"}'; kill -9 $$`, true},
		"block, noise on stderr":  {`echo noise >&2; echo '{"decision":"block","reason":"x"}'`, true},
		"context alone":           {`echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"x"}}'`, true},
		"exit 2, empty":           {`exit 2`, true},
		"exit 2, stdio held":      {`sleep 5 & echo x >&2; exit 2`, true},
		"block, stdout held":      {`sleep 5 2>/dev/null & echo '{"decision":"block","reason":"x"}'`, false},
		"block, stderr held":      {`sleep 5 >/dev/null & echo '{"decision":"block","reason":"x"}'`, false},
		"block and continue:fals": {`echo '{"decision":"block","reason":"x","continue":false}'`, false},
		"two documents":           {`echo '{"decision":"block","reason":"x"}{}'`, false},
		"wrong type":              {`echo '{"decision":1,"reason":"x"}'`, false},
		"approve":                 {`echo '{"decision":"approve"}'`, false},
		"exit 1":                  {`echo x >&2; exit 1`, false},
		"plain text":              {`echo x`, false},
		"not found":               {`/nonexistent/hook`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).on("Stop", `[ $n = 2 ] && exit 0; `+test.sh).rules(`[]`, `"idle-after": "10ms"`)
			c := l.start("hello")
			c.untilFired("Notification", 1) // idle
			if got := len(l.requests()) == 2; got != test.want {
				t.Errorf("goes on: %v, want %v; prompts %q", got, test.want, l.prompts())
			}
			if got := len(l.fired("Stop")) == 2; got != test.want {
				t.Errorf("a second Stop: %v, want %v", got, test.want)
			}
		})
	}
}

// A hook that takes too long ends the turn as if it had said nothing, also
// when it had said something; the session goes on.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] && { echo x >&2; sleep 300; exit 2; }; exit 0`, "timeout", 5).
		rules(`[]`, `"idle-after": "10ms"`)
	c := l.start("hello")
	c.untilFired("Notification", 1)
	if got := l.prompts(); len(got) != 1 {
		t.Fatalf("prompts %q", got)
	}
	c.keys("again\r")
	c.untilFired("Stop", 2)
}

// After 8 blocks in a row the ninth is overridden, unless the environment
// (the settings' before the process's) says otherwise; a tool call begins
// anew.
func TestBlockCap(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env, settings string
		rules         string
		stops         int
	}{
		"default":           {"", "", `[]`, 9},
		"20":                {"20", "", `[]`, 21},
		"1":                 {"1", "", `[]`, 2},
		"none":              {"0", "", `[]`, 25},
		"negative":          {"-1", "", `[]`, 25},
		"not a number":      {"abc", "", `[]`, 9},
		"settings win":      {"20", "3", `[]`, 4},
		"a tool in between": {"", "", `[{"match": "go", "steps": [{"tool": "Bash", "command": "true"}]}]`, 25},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).on("Stop", `[ $n = 25 ] && exit 0; echo go >&2; exit 2`).rules(test.rules, `"idle-after": "10ms"`)
			l.set("permissions", map[string]any{"allow": []string{"Bash"}})
			if test.env != "" {
				l.env = append(l.env, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="+test.env)
			}
			if test.settings != "" {
				l.set("env", map[string]string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": test.settings})
			}
			c := l.start("--permission-mode", "dontAsk", "--", "hello")
			c.untilFired("Notification", 1)
			if got := len(l.fired("Stop")); got != test.stops {
				t.Errorf("%d Stops, want %d", got, test.stops)
			}
		})
	}
}

// Hooks of all sources run in parallel, an identical command once; their
// words arrive together.
func TestHooksRunTogether(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	meet := func(me, other string) string {
		return `touch "$LAB/` + me + `"; i=0; while [ ! -f "$LAB/` + other + `" ] && [ $i -lt 500 ]; do i=$((i+1)); sleep 0.01; done; ` +
			`[ -f "$LAB/done.` + me + `" ] || { touch "$LAB/done.` + me + `"; echo ` + me + ` >&2; exit 2; }`
	}
	once := `echo x >>"$LAB/once"`
	l.settings["hooks"] = map[string]any{"Stop": append(command(meet("flag", "project")), command(once)...)}
	l.write("work/.claude/settings.json", `{"hooks":{"Stop":[{"hooks":[`+
		`{"type":"command","command":`+string(encode(meet("project", "flag")))+`},{"type":"command","command":`+string(encode(once))+`}]}]}}`)
	c := l.start("hello")
	c.until("two requests", func() bool { return len(l.requests()) == 2 })
	if got := l.requests()[1].Prompts; len(got) != 2 {
		t.Errorf("prompts %q", got)
	}
	c.until("the second Stop", func() bool { return strings.Count(readText(t, l.dir+"/once"), "x") >= 2 })
	c.term()
	if got := strings.Count(readText(t, l.dir+"/once"), "x"); got != 2 {
		t.Errorf("an identical command ran %d times in two Stops", got)
	}
}

// The exec form runs without a shell and is shown with its arguments.
func TestExecForm(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	script := l.write("hook.sh", "#!/bin/sh\n[ -f \"$LAB/x\" ] && exit 0; touch \"$LAB/x\"; printf '%s' \"$1\" >&2; exit 2\n")
	if err := chmodX(script); err != nil {
		t.Fatal(err)
	}
	l.settings["hooks"].(map[string]any)["Stop"] = command(script, "args", []string{"a b"})
	c := l.start("hello")
	c.until("two requests", func() bool { return len(l.requests()) == 2 })
	if got, want := l.prompts()[1], "Stop hook feedback:\n["+script+" a b]: a b"; got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
}
