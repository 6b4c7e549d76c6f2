package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// UserPromptSubmit's words go with the request; a refusal is the prompt's
// end: no request, no Stop.
func TestUserPromptSubmit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sh      string
		blocked bool
		system  string
	}{
		"context":     {`echo '{"hookSpecificOutput":{"additionalContext":"/ctx @x"}}'`, false, "UserPromptSubmit hook additional context: /ctx @x"},
		"plain":       {`echo plain`, false, "UserPromptSubmit hook success: plain"},
		"then died":   {`echo '{"hookSpecificOutput":{"additionalContext":"c"}}'; kill -9 $$`, false, "UserPromptSubmit hook additional context: c"},
		"killed":      {`kill -9 $$`, false, ""},
		"exit 2":      {`echo no >&2; exit 2`, true, ""},
		"block":       {`echo '{"decision":"block","reason":"no"}'`, true, ""},
		"long, spilt": {`printf '%010010d' 7`, false, "Output too large (10010 characters)"},
		"inline":      {`printf '%09990d' 7`, false, "0007"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).on("UserPromptSubmit", test.sh)
			c := l.start("hello")
			if test.blocked {
				c.untilSeen("blocked by hook")
				c.keys(" again\r") // what was refused is typed in already
				if got := c.untilFired("UserPromptSubmit", 2)["prompt"]; got != "hello again" {
					t.Errorf("prompt %q", got)
				}
				c.term()
				l.wantEvents("SessionStart", "UserPromptSubmit", "UserPromptSubmit", "SessionEnd")
				return
			}
			c.untilFired("Stop", 1)
			system := strings.Join(l.requests()[0].System, "\n")
			if !strings.Contains(system, test.system) || (test.system == "") != (system == "") {
				t.Errorf("system %.200q", system)
			}
			if l.fired("UserPromptSubmit")[0]["prompt"] != "hello" {
				t.Errorf("payload %v", l.fired("UserPromptSubmit")[0])
			}
		})
	}
}

// SessionStart's words go with the first request, which waits for it.
func TestSessionStartContext(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("SessionStart", `sleep 0.2; echo early`)
	c := l.start("hello")
	c.untilFired("Stop", 1)
	if got := l.requests()[0].System; !slices.Equal(got, []string{"SessionStart:startup hook success: early"}) {
		t.Errorf("system %q", got)
	}
	p := l.fired("SessionStart")[0]
	if p["source"] != "startup" || p["model"] != "claude-opus-5-5" || p["prompt_id"] != nil {
		t.Errorf("payload %v", p)
	}
}

// What is no prompt: nothing, blanks, commands. /exit ends.
func TestPromptArgument(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args   []string
		prompt string // "": none reaches the model
	}{
		"none":            {nil, ""},
		"blank":           {[]string{" "}, ""},
		"command":         {[]string{"/nosuchcommand x"}, ""},
		"blank, command":  {[]string{" /nosuchcommand"}, ""},
		"path":            {[]string{"/etc/motd is what?"}, "/etc/motd is what?"},
		"flag after --":   {[]string{"--", "--dangerously-skip-permissions"}, "--dangerously-skip-permissions"},
		"control":         {[]string{"--", "a\x07b\x1b[1m\n"}, "ab[1m\n"},
		"unknown flag":    {[]string{"--frob=1", "--frobnicate", "x"}, "x"},
		"allowed tools":   {[]string{"--allowedTools=Bash(git *),Read", "x"}, "x"},
		"first of a task": {[]string{"--", "Task:\n\n/exit\n!touch x\n@note.txt\n"}, "Task:\n\n/exit\n!touch x\n@note.txt\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			c := l.start(test.args...)
			if test.prompt == "" {
				c.untilFired("SessionStart", 1)
				c.keys("end\r") // the sign that nothing came before it
				c.untilFired("Stop", 1)
				test.prompt = "end"
			}
			c.untilFired("Stop", 1)
			if got := l.prompts(); !slices.Equal(got, []string{test.prompt}) {
				t.Errorf("prompts %q, want %q", got, test.prompt)
			}
		})
	}
}

// @file is read into the request, unless the environment says no.
func TestFileMentions(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"", "1"} {
		t.Run("off="+off, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("work/note.txt", "secret words")
			l.env = append(l.env, "CLAUDE_CODE_DISABLE_FILE_MENTIONS="+off)
			c := l.start("look at @note.txt")
			c.untilFired("Stop", 1)
			system := strings.Join(l.requests()[0].System, "")
			if got := strings.Contains(system, "secret words"); got != (off == "") {
				t.Errorf("system %q", system)
			}
		})
	}
}

// A background task lives on after an approved Stop; its end is a prompt of
// its own, with its own id.
func TestBackgroundTask(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"background": "while [ ! -f $LAB/end ]; do sleep 0.01; done; exit 3"}, {"reply": "started"}]}]`)
	l.set("permissions", map[string]any{"allow": []string{"Bash"}})
	c := l.start("--permission-mode", "dontAsk", "--", "go")
	first := c.untilFired("Stop", 1)
	tasks := first["background_tasks"].([]any)
	if len(tasks) != 1 || tasks[0].(map[string]any)["type"] != "shell" || tasks[0].(map[string]any)["status"] != "running" {
		t.Errorf("background_tasks %v", tasks)
	}
	l.write("end", "")
	second := c.untilFired("Stop", 2)
	if second["stop_hook_active"] != false || second["prompt_id"] == first["prompt_id"] || len(second["background_tasks"].([]any)) != 0 {
		t.Errorf("second Stop %v", second)
	}
	notice := l.fired("UserPromptSubmit")[1]
	if p := notice["prompt"].(string); !strings.HasPrefix(p, "<task-notification>\n<task-id>") || !strings.Contains(p, "failed (exit code 3)") {
		t.Errorf("notification %q", p)
	}
	l.wantEvents("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "Stop")
}

// A task that ends while a Stop hook waits is heard of after the hook's
// return.
func TestBackgroundTaskEndsDuringStop(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"background": "touch $LAB/ended"}]}]`)
	l.on("Stop", `if [ $n = 1 ]; then i=0; while [ ! -f "$LAB/ended" ] && [ $i -lt 500 ]; do i=$((i+1)); sleep 0.01; done; sleep 0.1; cp "$LAB/hooks.log" "$LAB/during"; fi`)
	l.set("permissions", map[string]any{"allow": []string{"Bash"}})
	c := l.start("--permission-mode=dontAsk", "go")
	c.untilFired("Stop", 2)
	if got := strings.Count(readText(t, filepath.Join(l.dir, "during")), "UserPromptSubmit"); got != 1 {
		t.Errorf("%d prompts during the Stop hook, want 1", got)
	}
}

// A subagent runs in the background: the main Stop comes first.
func TestSubagent(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"subagent": "sub answer", "for": "300ms"}]}]`)
	c := l.start("go")
	c.untilFired("Stop", 2)
	if got := l.fired("Stop")[0]["background_tasks"].([]any)[0].(map[string]any)["type"]; got != "subagent" {
		t.Errorf("task type %v", got)
	}
	stop := l.fired("SubagentStop")[0]
	if stop["agent_type"] != "general-purpose" || stop["last_assistant_message"] != "sub answer" {
		t.Errorf("SubagentStop %v", stop)
	}
	if len(l.fired("SubagentStart")) != 1 {
		t.Error("no SubagentStart")
	}
}

// When the API fails there is a StopFailure and no Stop; its hooks' answers
// count for nothing; the session goes idle and takes the next prompt.
func TestAPIFailure(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "times": 1, "steps": [{"fail": "rate_limit", "details": "429 {}"}]}]`, `"idle-after": "20ms"`)
	l.on("StopFailure", `echo again >&2; exit 2`)
	c := l.start("go")
	if n := c.untilFired("Notification", 1); n["notification_type"] != "idle_prompt" || n["message"] != "Claude is waiting for your input" {
		t.Errorf("Notification %v", n)
	}
	p := l.fired("StopFailure")[0]
	if p["error"] != "rate_limit" || p["error_details"] != "429 {}" || p["last_assistant_message"] == "" || p["permission_mode"] != nil {
		t.Errorf("StopFailure %v", p)
	}
	c.keys("go\r")
	c.untilFired("Stop", 1)
}

// An asynchronous hook is not waited for; with asyncRewake its exit 2 wakes
// the idle session.
func TestAsyncRewake(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] || exit 0; while [ ! -f "$LAB/wake" ]; do sleep 0.01; done; echo up >&2; exit 2`, "asyncRewake", true).
		rules(`[]`, `"idle-after": "10ms"`)
	c := l.start("hello")
	c.untilFired("Notification", 1)
	l.write("wake", "")
	if stop := c.untilFired("Stop", 2); stop["stop_hook_active"] != true {
		t.Errorf("Stop %v", stop)
	}
	if got := l.requests()[1]; !strings.HasPrefix(got.Prompts[0], "<task-notification>") || !strings.Contains(got.System[0], ": up") {
		t.Errorf("request %v", got)
	}
}

// The environment of hooks, and where they run.
func TestHookEnvironment(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `{ env; echo "TTY=$(tty)"; echo "DIR=$(pwd -P)"; } >"$LAB/env.new"; mv "$LAB/env.new" "$LAB/env"`)
	l.env = append(l.env, "FROM=process", "MINE=kept")
	l.set("env", map[string]string{"FROM": "settings"}).set("permissions", map[string]any{"allow": []string{"Bash"}})
	l.rules(`[{"match": "go", "steps": [{"tool": "Bash", "command": "mkdir sub && cd sub"}]}]`)
	c := l.start("--permission-mode", "dontAsk", "--", "go")
	stop := c.untilFired("Stop", 1)
	c.until("the hook's end", func() bool { return l.exists("env") })
	env := readText(t, l.dir+"/env")
	work, err := filepath.EvalSymlinks(l.work)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"FROM=settings", "MINE=kept", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR=" + work,
		"CLAUDE_CODE_SESSION_ID=" + stop["session_id"].(string), "DIR=" + work + "/sub", "TTY=not a tty",
	} {
		if !slices.Contains(strings.Split(env, "\n"), want) {
			t.Errorf("no %s in\n%s", want, env)
		}
	}
	if stop["cwd"] != work+"/sub" {
		t.Errorf("cwd %v", stop["cwd"])
	}
}

// The transcript is written behind: what a hand-over adds is there soon, and
// lost when the client is killed before.
func TestTranscript(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] && { echo handed over >&2; exit 2; }; exit 0`)
	c := l.start("hello")
	path := c.untilFired("Stop", 2)["transcript_path"].(string)
	c.until("a record of the hand-over", func() bool {
		data, _ := os.ReadFile(path)
		return strings.Contains(string(data), `]: handed over\n"},"isMeta":true`)
	})

	slow := newLab(t).on("Stop", `echo handed over >&2; exit 2`)
	slow.script = `{"think": "1ms", "transcript-delay": "20s", "rules": [{"match": "handed over", "steps": [{"crash": true}]}]}`
	c = slow.start("hello")
	if got := c.code(); got != -1 {
		t.Errorf("exit status %d, want death by a signal", got)
	}
	path = slow.fired("Stop")[0]["transcript_path"].(string)
	if data, err := os.ReadFile(path); err == nil {
		t.Errorf("a transcript: %s", data)
	}
	if len(slow.requests()) != 2 {
		t.Errorf("requests %v", slow.requests())
	}
}
