package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

const user = `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo user >>$LAB/stops"}]}]}}`

// Without trust there is a dialog, and no hook runs; a trusted parent is
// enough, and so is CLAUDE_CODE_SANDBOXED.
func TestTrust(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		c := l.start("--require-trust", "hello")
		c.untilSeen("I trust this folder")
		c.keys("\r")
		if got := c.code(); got != 1 || len(l.events()) != 0 {
			t.Errorf("exit status %d, hooks %v", got, l.events())
		}
	})
	t.Run("accepted, and remembered", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.write("home/.claude.json", `{"theme":"dark"}`)
		c := l.start("--require-trust", "hello")
		c.untilSeen("I trust this folder")
		c.keys("\x1b[B")
		c.keys("\r")
		c.untilFired("Stop", 1)
		c.term()
		if got := readText(t, filepath.Join(l.home, ".claude.json")); !strings.Contains(got, `"theme":"dark"`) {
			t.Errorf(".claude.json lost what it had: %s", got)
		}
		again := l.start("--require-trust", "hello")
		again.untilFired("Stop", 2)
	})
	t.Run("sandboxed", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.env = append(l.env, "CLAUDE_CODE_SANDBOXED=1")
		l.start("--require-trust", "hello").untilFired("Stop", 1)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		c := newLab(t).start("--require-trust", "hello")
		c.untilSeen("I trust this folder")
		c.signal(syscall.SIGTERM)
		if got := c.code(); got != 143 {
			t.Errorf("exit status %d", got)
		}
	})
	t.Run("parent", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		dir, err := filepath.EvalSymlinks(l.dir)
		if err != nil {
			t.Fatal(err)
		}
		l.write("home/.claude.json", `{"projects":{"`+dir+`":{"hasTrustDialogAccepted":true}}}`)
		l.start("--require-trust", "hello").untilFired("Stop", 1)
	})
}

// Settings that are broken at the start open a dialog that hangs, and no
// hook runs meanwhile, not those of --settings either.
func TestSettingsDialogs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ project, dialog string }{
		"broken":        {`{"hooks": {`, "Settings Error"},
		"unknown event": {`{"hooks":{"Stopp":[]}}`, "Settings Warning"},
		"zero timeout":  {`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","timeout":0}]}]}}`, "Settings Warning"},
		"negative":      {`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","timeout":-5}]}]}}`, "Settings Warning"},
		"text":          {`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","timeout":"30"}]}]}}`, "Settings Warning"},
		"no command":    {`{"hooks":{"Stop":[{"hooks":[{"type":"command"}]}]}}`, "Settings Warning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("work/.claude/settings.json", test.project)
			c := l.start("hello")
			c.untilSeen(test.dialog)
			if len(l.events()) != 0 {
				t.Errorf("hooks %v", l.events())
			}
			c.keys("\r")
			c.untilFired("Stop", 1)
		})
	}
}

// Files of the user and the project are read at every event; --settings is
// pinned; --setting-sources and disableAllHooks hold.
func TestSettingsSources(t *testing.T) {
	t.Parallel()
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		l := newLab(t).rules(`[]`, `"idle-after": "1ms"`)
		c := l.start("one")
		c.untilFired("Notification", 1)
		l.write("home/.claude/settings.json", user)
		l.write("settings.json", `{}`) // no effect
		c.keys("two\r")
		c.untilFired("Notification", 2)
		if !l.exists("stops") || len(l.fired("Stop")) != 2 {
			t.Errorf("new hook ran: %v, %d Stops", l.exists("stops"), len(l.fired("Stop")))
		}
		l.write("home/.claude/settings.json", `{"hooks": `)
		c.keys("three\r")
		c.untilFired("Notification", 3)
		if got := readText(t, l.dir+"/stops"); got != "user\n" {
			t.Errorf("a broken file's hook ran: %q", got)
		}
		l.write("work/.claude/settings.local.json", `{"disableAllHooks": true}`)
		c.keys("four\r")
		c.until("the fourth request", func() bool { return len(l.requests()) == 4 })
		c.untilSeen("done: four")
		c.signal(syscall.SIGTERM)
		if c.code(); len(l.fired("Stop")) != 3 || len(l.fired("SessionEnd")) != 0 {
			t.Errorf("hooks ran although all are off: %v", l.events())
		}
	})
	t.Run("not read", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.write("work/.claude/settings.json", `{"disableAllHooks": true}`)
		l.write("work/.claude/settings.local.json", `{broken`)
		l.start("--setting-sources", "user", "hello").untilFired("Stop", 1)
	})
}

// Bypass mode warns once, unless the user's own or the flag's settings say
// that it need not; a project's cannot.
func TestBypass(t *testing.T) {
	t.Parallel()
	const skip = `{"skipDangerousModePermissionPrompt": true}`
	for name, test := range map[string]struct {
		file string
		asks bool
	}{"user": {"home/.claude/settings.json", false}, "project": {"work/.claude/settings.json", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(touchRule)
			l.env = append(l.env, "IS_SANDBOX=1")
			l.write(test.file, skip)
			c := l.start("--dangerously-skip-permissions", "go")
			if test.asks {
				c.untilSeen("WARNING")
				c.keys("2")
			}
			c.untilFired("Stop", 1)
			if c.seen("WARNING") != test.asks || !l.exists("ran") {
				t.Errorf("asked: %v, ran: %v", c.seen("WARNING"), l.exists("ran"))
			}
		})
	}
	t.Run("as root", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			t.Skip("only root is refused")
		}
		c := newLab(t).start("--permission-mode", "bypassPermissions", "go")
		if got := c.code(); got != 1 {
			t.Errorf("exit status %d", got)
		}
		c.untilSeen("cannot be used with root")
	})
}

// A session is known by its transcript: its id is taken once, and can be gone
// on with.
func TestSessions(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-4333-8444-555555555555"
	l := newLab(t)
	c := l.start("--session-id", id, "hello")
	if got := c.untilFired("Stop", 1)["session_id"]; got != id {
		t.Errorf("session_id %v", got)
	}
	c.term()
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--session-id", id, "x"}, "already in use"},
		{[]string{"--resume", "22222222-2222-4333-8444-555555555555", "x"}, "No conversation found"},
		{[]string{"--resume", id, "--session-id", id}, "--fork-session"},
		{[]string{"--settings", "/nonexistent.json"}, "Settings file not found"},
		{[]string{"--permission-mode", "frob"}, "is invalid"},
		{[]string{"--script", "/nonexistent.json"}, "cannot read script"},
	} {
		c := l.start(test.args...)
		if got := c.code(); got != 1 {
			t.Errorf("%v: exit status %d", test.args, got)
		}
		c.untilSeen(test.says)
	}
	c = l.start("--resume", id, "more")
	stop := c.untilFired("Stop", 2)
	start := l.fired("SessionStart")[1]
	if start["source"] != "resume" || start["session_id"] != id || stop["stop_hook_active"] != false {
		t.Errorf("SessionStart %v, Stop %v", start, stop)
	}
	c.term()
	c = l.start("--continue")
	if got := c.untilFired("SessionStart", 3); got["session_id"] != id || got["source"] != "resume" {
		t.Errorf("SessionStart %v", got)
	}
	c.term()
	c = l.start("--resume", id, "--fork-session", "x")
	if got := c.untilFired("SessionStart", 4); got["session_id"] == id || got["source"] != "fork" {
		t.Errorf("SessionStart %v", got)
	}
}

// Without a terminal, and with -p, one prompt is answered on stdout; Stop
// hooks continue it; an API failure is status 1.
func TestPrint(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] && { echo more >&2; exit 2; }; exit 0`)
	started := time.Now()
	cmd := l.command([]string{"hello"})
	out, err := cmd.Output()
	if err != nil || string(out) != "done: more\n" {
		t.Errorf("stdout %q, %v", out, err)
	}
	l.wantEvents("SessionStart", "UserPromptSubmit", "Stop", "Stop", "SessionEnd")
	if p := l.fired("SessionStart")[0]; p["model"] != nil {
		t.Errorf("SessionStart %v", p)
	}
	if p := l.fired("Stop")[0]; p["permission_mode"] != "default" {
		t.Errorf("Stop %v", p)
	}

	failing := newLab(t).rules(`[{"steps": [{"fail": "server_error"}]}]`)
	cmd = failing.command([]string{"-p"})
	cmd.Stdin = strings.NewReader("from stdin")
	out, err = cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("stdout %q, %v", out, err)
	}
	failing.wantEvents("SessionStart", "UserPromptSubmit", "StopFailure", "SessionEnd")
	if got := failing.prompts(); len(got) != 1 || got[0] != "from stdin" {
		t.Errorf("prompts %q", got)
	}
	if took := time.Since(started); took > testbed.Patience {
		t.Errorf("it took %v: --max-time ended it", took)
	}
}

// --home makes a home of its own, for the client and what it starts.
func TestHome(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `echo $HOME >"$LAB/home.txt"`)
	c := l.start("--home", "other", "hello")
	path := c.untilFired("Stop", 1)["transcript_path"].(string)
	c.until("HOME", func() bool { return l.exists("home.txt") && readText(t, l.dir+"/home.txt") != "" })
	home := strings.TrimSpace(readText(t, l.dir+"/home.txt"))
	if filepath.Base(home) != "other" || !strings.HasPrefix(path, home+"/.claude/projects/") {
		t.Errorf("HOME %q, transcript %q", home, path)
	}
}

// SessionEnd's hooks get 1.5 s unless they ask for more.
func TestSessionEndTimeout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more     []any
		sleep    string
		finishes bool
	}{"default": {nil, "60", false}, "asked": {[]any{"timeout", 30}, "1.7", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).on("SessionEnd", `sleep `+test.sleep+`; touch "$LAB/finished"`, test.more...)
			c := l.start("hello")
			c.untilFired("Stop", 1)
			c.term()
			if got := l.exists("finished"); got != test.finishes {
				t.Errorf("finished: %v", got)
			}
		})
	}
}
