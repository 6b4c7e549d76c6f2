package simulate

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const waitForFile = `i=0; while [ ! -f "$LAB/go" ] && [ $i -lt 1000 ]; do i=$((i+1)); sleep 0.01; done; `

// A prompt typed while a Stop hook waits fires UserPromptSubmit at once, with
// the old prompt_id; what the hook hands over runs first, then the typed
// turn, with an id of its own.
func TestTypedWhileHookWaits(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] || exit 0; `+waitForFile+`echo handed over >&2; exit 2`)
	c := l.start("first")
	c.untilFired("Stop", 1)
	c.keys("typed\r")
	p := c.untilFired("UserPromptSubmit", 2)
	if p["prompt"] != "typed" || p["prompt_id"] != l.fired("Stop")[0]["prompt_id"] {
		t.Errorf("payload %v", p)
	}
	l.write("go", "")
	c.untilFired("Stop", 3)
	prompts := l.prompts()
	if len(prompts) != 3 || !strings.HasSuffix(prompts[1], "handed over\n") || prompts[2] != "typed" {
		t.Errorf("prompts %q", prompts)
	}
	stops := l.fired("Stop")
	if stops[2]["prompt_id"] == stops[0]["prompt_id"] || stops[2]["stop_hook_active"] != false {
		t.Errorf("the typed turn's Stop %v", stops[2])
	}
	if n := len(l.fired("UserPromptSubmit")); n != 2 {
		t.Errorf("%d UserPromptSubmit, want 2", n)
	}
}

// /clear typed while a hook waits runs after it: the session's id changes,
// the process does not, and no Stop comes.
func TestClear(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `[ $n = 1 ] || exit 0; `+waitForFile)
	c := l.start("first")
	old := c.untilFired("Stop", 1)["session_id"]
	c.keys("/clear\r")
	l.write("go", "")
	start := c.untilFired("SessionStart", 2)
	if start["source"] != "clear" || start["session_id"] == old || start["model"] != nil {
		t.Errorf("SessionStart %v", start)
	}
	if end := l.fired("SessionEnd")[0]; end["reason"] != "clear" || end["session_id"] != old {
		t.Errorf("SessionEnd %v", end)
	}
	c.keys("again\r")
	if stop := c.untilFired("Stop", 2); stop["session_id"] != start["session_id"] {
		t.Errorf("Stop %v", stop)
	}
	l.wantEvents("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "SessionStart", "UserPromptSubmit", "Stop")
}

// Esc and ^C end what runs without Stop, StopFailure or idle_prompt; a hook
// that waits gets SIGTERM. Text without Esc only waits.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ rules, stop, key string }{
		"esc, hanging":  {`[{"match": "go", "steps": [{"hang": true}]}]`, "", "\x1b"},
		"^C, hanging":   {`[{"match": "go", "steps": [{"hang": true}]}]`, "", "\x03"},
		"esc, tool":     {`[{"match": "go", "steps": [{"tool": "Bash", "command": "touch $LAB/busy; sleep 30"}]}]`, "", "\x1b"},
		"esc, in hook":  {`[]`, `[ $n = 1 ] || exit 0; trap 'touch "$LAB/termed"' TERM; touch "$LAB/busy"; sleep 30; exit 2`, "\x1b"},
		"esc, thinking": {`[{"match": "go", "steps": [{"delay": "30s"}]}]`, "", "\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(test.rules, `"idle-after": "1ms"`).on("Stop", test.stop)
			if test.stop == "" {
				l.on("Stop", "exit 0")
			}
			l.set("permissions", map[string]any{"allow": []string{"Bash"}})
			c := l.start("--permission-mode=dontAsk", "go")
			c.until("it runs", func() bool { return len(l.requests()) == 1 })
			if strings.Contains(test.rules+test.stop, "LAB/busy") {
				c.until("it is busy", func() bool { return l.exists("busy") })
			}
			c.keys(test.key)
			if test.stop != "" {
				c.until("SIGTERM", func() bool { return l.exists("termed") })
			} else {
				c.untilSeen("Interrupted")
			}
			stops := len(l.fired("Stop"))
			c.keys("next\r")
			c.untilFired("Stop", stops+1)
			c.keys("last\r")
			c.untilFired("Stop", stops+2)
			want := []string{"go", "[Request interrupted by user]\n", "next", "last"}
			if test.stop != "" {
				want = []string{"go", "next", "last"} // the turn was over
			}
			if got := l.prompts(); !slices.Equal(got, want) {
				t.Errorf("prompts %q", got)
			}
			if i := slices.Index(l.events(), "Notification"); i >= 0 && i < slices.Index(l.events(), "UserPromptSubmit")+2 {
				t.Errorf("idle_prompt after an interrupt: %v", l.events())
			}
			if len(l.fired("StopFailure")) != 0 {
				t.Error("a StopFailure")
			}
		})
	}
}

// How sessions end: exit status, and the reason SessionEnd gets, which is
// waited for. Whatever runs gets SIGTERM.
func TestEnding(t *testing.T) {
	t.Parallel()
	states := map[string]struct{ rules, stop string }{
		"idle":    {`[]`, "exit 0"},
		"hanging": {`[{"match": "go", "steps": [{"hang": true}]}]`, "exit 0"},
		"tool":    {`[{"match": "go", "steps": [{"tool": "Bash", "command": "echo $$ >$LAB/pid; exec sleep 30"}]}]`, "exit 0"},
		"hook":    {`[]`, `echo $$ >"$LAB/pid"; exec sleep 30`},
		"task":    {`[{"match": "go", "steps": [{"background": "echo $$ >$LAB/pid; exec sleep 30"}]}]`, "exit 0"},
	}
	ends := map[string]struct {
		do     func(c *client)
		code   int
		reason string
	}{
		"TERM":   {func(c *client) { c.signal(syscall.SIGTERM) }, 143, "other"},
		"HUP":    {func(c *client) { c.signal(syscall.SIGHUP) }, 129, "other"},
		"INT":    {func(c *client) { c.signal(syscall.SIGINT) }, 0, "other"},
		"master": {func(c *client) { _ = c.tty.Close() }, 0, "other"},
	}
	for state, run := range states {
		for name, end := range ends {
			t.Run(state+" "+name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t).rules(run.rules).on("Stop", run.stop).on("SessionEnd", `sleep 0.2; touch "$LAB/ended"`, "timeout", 60)
				l.set("permissions", map[string]any{"allow": []string{"Bash"}})
				c := l.start("--permission-mode=dontAsk", "go")
				switch {
				case strings.Contains(run.rules+run.stop, "LAB/pid"):
					c.until("a pid", func() bool { return l.exists("pid") && readText(t, l.dir+"/pid") != "" })
				case state == "idle":
					c.untilFired("Stop", 1)
				default:
					c.until("a request", func() bool { return len(l.requests()) == 1 })
				}
				end.do(c)
				if got := c.code(); got != end.code {
					t.Errorf("exit status %d, want %d", got, end.code)
				}
				if !l.exists("ended") || l.fired("SessionEnd")[0]["reason"] != end.reason {
					t.Errorf("SessionEnd %v, waited for: %v", l.fired("SessionEnd"), l.exists("ended"))
				}
				if l.exists("pid") && alive(t, readText(t, l.dir+"/pid")) {
					t.Error("what ran still runs")
				}
			})
		}
	}
}

// A person leaves by /exit, or the same key twice; with background tasks the
// client asks first.
func TestLeave(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"/exit": {"/exit\r"}, "^D^D": {"\x04", "\x04"}, "^C^C": {"\x03", "\x03"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t).rules(`[]`, `"idle-after": "1ms"`)
			c := l.start("hello")
			c.untilFired("Notification", 1) // idle: the first ^C aborts what runs
			for i, k := range keys {
				if i > 0 {
					c.untilSeen("again to exit")
				}
				c.keys(k)
			}
			if got := c.code(); got != 0 {
				t.Errorf("exit status %d", got)
			}
			if got := l.fired("SessionEnd")[0]["reason"]; got != "prompt_input_exit" {
				t.Errorf("reason %v", got)
			}
		})
	}
	t.Run("with a task", func(t *testing.T) {
		t.Parallel()
		l := newLab(t).rules(`[{"match": "go", "steps": [{"background": "sleep 30"}]}]`)
		c := l.start("go")
		c.untilFired("Stop", 1)
		c.keys("/exit\r")
		c.untilSeen("Background work is running")
		c.keys("\r")
		if got := c.code(); got != 0 {
			t.Errorf("exit status %d", got)
		}
	})
}

// SIGKILL leaves a waiting hook behind, and no SessionEnd.
func TestKilled(t *testing.T) {
	t.Parallel()
	l := newLab(t).on("Stop", `echo $$ >"$LAB/pid"; `+waitForFile+`sleep 0.1; touch "$LAB/survived"`)
	c := l.start("go")
	c.until("a pid", func() bool { return l.exists("pid") })
	c.signal(syscall.SIGKILL)
	c.code()
	l.write("go", "")
	c.until("the orphan's end", func() bool { return l.exists("survived") })
	if n := len(l.fired("SessionEnd")); n != 0 {
		t.Errorf("%d SessionEnd", n)
	}
}

// A client that ignores signals, and one that ends itself.
func TestScriptedEndings(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "bye", "steps": [{"exit": 7}]}]`, `"ignore-signals": ["TERM", "HUP"]`)
	c := l.start()
	c.untilFired("SessionStart", 1)
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGHUP)
	c.keys("bye\r")
	if got := c.code(); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
}

// The client stops when nobody reads its screen, and still ends when told to.
func TestScreenUnread(t *testing.T) {
	t.Parallel()
	l := newLab(t).rules(`[{"match": "go", "steps": [{"print": "` + strings.Repeat("x", 1000) + `", "repeat": 1000}]}]`)
	c := l.start()
	c.untilFired("SessionStart", 1)
	c.mu.Lock() // drain stops here
	defer c.mu.Unlock()
	c.keys("go\r")
	c.until("a request", func() bool { return len(l.requests()) == 1 })
	time.Sleep(300 * time.Millisecond) // that nothing comes can only be waited for
	if n := len(l.fired("Stop")); n != 0 {
		t.Errorf("%d Stops with a full screen", n)
	}
	c.signal(syscall.SIGTERM)
	if code := c.code(); code != 143 {
		t.Errorf("exit status %d", code)
	}
}

// An idle screen is quiet.
func TestIdleScreen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.start("hello")
	c.untilFired("Stop", 1)
	size := func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.screen.Len() }
	last, since := size(), time.Now()
	c.until("half a second of silence", func() bool {
		if n := size(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}
