package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/testbed"
)

// patience is how long something that must happen may take on a loaded
// machine.
const patience = testbed.Patience

// apiKey is made up.
const apiKey = "sk-ant-api03-made-up-for-tests-0123456789abcdefghij"

// Lab is a place to run a client in: a home, a workspace, an API and hooks
// that report to the test. Nothing of the machine's own configuration is seen.
type Lab struct {
	t      *testing.T
	client client
	// Dir holds everything; Home and Work are in it. They hold no link.
	Dir, Home, Work string
	API             *fakeapi.Server
	hooks           *hookServer
	hook            string // the hook's program
	extra           []string
	started         []*Terminal
}

// newLab prepares a lab whose workspace is trusted. answer decides what each
// call of a hook does; it runs for several calls at once and may block; nil
// means that hooks do nothing. rules are the model's part for the real client;
// see Model for either.
func newLab(t *testing.T, c client, answer func(*Call) Reply, rules ...fakeapi.Rule) *Lab {
	t.Helper()
	if answer == nil {
		answer = func(*Call) Reply { return Reply{} }
	}
	dir, err := os.MkdirTemp("", "e2e-") // short: the client puts sockets below
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	testbed.Played(t, testbed.Scenarios+map[bool]string{true: ", real client", false: ", stand-in"}[c.real], 1)
	l := &Lab{
		t: t, client: c, Dir: dir,
		Home: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"), hook: filepath.Join(dir, hookName),
	}
	t.Cleanup(func() {
		l.sweep()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
	})
	for _, d := range []string{l.Home, filepath.Join(l.Work, ".claude"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, l.hook); err != nil {
		t.Fatal(err)
	}
	if l.API, err = fakeapi.Start(rules...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.API.Close() })
	l.hooks = newHookServer(t, "@"+filepath.Base(dir), answer)
	l.Trust(l.Work)
	if c.name == realName {
		l.Probed(c.path)
	}
	l.Setenv("SIMULATE_LOG=" + l.modelLog())
	return l
}

// sweep kills what was started in the lab and outlived its client, as some
// tests want it to.
func (l *Lab) sweep() {
	mark := []byte("HOME=" + l.Home + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, mark) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	}
}

// Trust writes the client's own state file so that it asks nothing at the
// start and trusts these folders only.
func (l *Lab) Trust(dirs ...string) {
	l.t.Helper()
	projects := map[string]any{}
	for _, d := range dirs {
		projects[d] = map[string]any{"hasTrustDialogAccepted": true}
	}
	l.WriteJSON(filepath.Join(l.Home, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true,
		"theme":                  "dark",
		"customApiKeyResponses":  map[string]any{"approved": []string{apiKey[len(apiKey)-20:]}, "rejected": []string{}},
		"projects":               projects,
	})
}

// WriteJSON writes a file whole.
func (l *Lab) WriteJSON(path string, v any) {
	l.t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// Setenv adds NAME=VALUE to the environment of what is started later.
func (l *Lab) Setenv(nv ...string) { l.extra = append(l.extra, nv...) }

// Env is the whole environment of a client.
func (l *Lab) Env() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + l.Home,
		"TMPDIR=" + filepath.Join(l.Dir, "tmp"),
		"CLAUDE_CODE_TMPDIR=" + filepath.Join(l.Dir, "tmp"),
		"TERM=xterm-256color",
		"LANG=C.UTF-8",
		"SHELL=/bin/sh",
		"ANTHROPIC_BASE_URL=" + l.API.URL(),
		"ANTHROPIC_API_KEY=" + apiKey,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1",
		"IS_SANDBOX=1",
		// Hooks are this program: without a second of waiting at each exit when it
		// is built with the race detector.
		"GORACE=atexit_sleep_ms=0",
	}, l.extra...)
}

// HookEntry is an entry for settings that calls the lab's hook. A timeout of 0
// leaves it out.
func (l *Lab) HookEntry(event, tag string, timeout float64) map[string]any {
	entry := map[string]any{
		"type":    "command",
		"command": strings.Join([]string{l.hook, l.hooks.listener.Addr().String(), event, tag}, " "),
	}
	if timeout != 0 {
		entry["timeout"] = timeout
	}
	return map[string]any{"hooks": []any{entry}}
}

// allEvents are the hook events that the client knows and that need no
// unusual set-up to occur.
var allEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
	"Notification", "SubagentStart", "SubagentStop", "Stop", "StopFailure", "PreCompact", "PostCompact", "SessionEnd",
}

// Hooks returns settings with the lab's hook for events, all when none is named.
func (l *Lab) Hooks(events ...string) map[string]any {
	if len(events) == 0 {
		events = allEvents
	}
	hooks := map[string]any{}
	for _, e := range events {
		hooks[e] = []any{l.HookEntry(e, "-", 0)}
	}
	return map[string]any{"hooks": hooks}
}

// ProjectSettings writes the workspace's .claude/settings.json.
func (l *Lab) ProjectSettings(settings map[string]any) {
	l.t.Helper()
	l.WriteJSON(filepath.Join(l.Work, ".claude", "settings.json"), settings)
}

// Start runs the client in the workspace, in a terminal.
func (l *Lab) Start(args ...string) *Terminal {
	l.t.Helper()
	if _, err := os.Stat(l.modelScript()); err == nil && !l.client.real {
		args = append([]string{"--require-trust", "--script=" + l.modelScript()}, args...)
	}
	cmd := exec.Command(l.client.path, args...)
	cmd.Dir, cmd.Env = l.Work, l.Env()
	term := startTerminal(l.t, cmd)
	l.started = append(l.started, term)
	return term
}

// Calls returns the calls of hooks so far, of these events when some are named.
func (l *Lab) Calls(events ...string) []*Call {
	var out []*Call
	for _, c := range l.hooks.Calls() {
		if len(events) == 0 || slices.Contains(events, c.Event) {
			out = append(out, c)
		}
	}
	return out
}

// ModelCalls returns what was asked in each request to the real client's
// model: the new user texts.
func (l *Lab) ModelCalls() [][]string {
	var out [][]string
	for _, r := range l.asked() {
		out = append(out, r.Prompts())
	}
	return out
}

// asked are the requests to the model, but for a title of the session, which older
// clients ask for beside the first (2.1.270).
func (l *Lab) asked() []*fakeapi.Request {
	return slices.DeleteFunc(l.API.Requests(), func(r *fakeapi.Request) bool {
		return strings.HasPrefix(strings.Join(r.Prompts(), ""), "<session>\n")
	})
}

// Until waits for something that must come true.
func (l *Lab) Until(what string, ok func() bool) {
	l.t.Helper()
	l.UntilWithin(what, patience, ok)
}

// UntilWithin is Until for what takes long by itself.
func (l *Lab) UntilWithin(what string, limit time.Duration, ok func() bool) {
	l.t.Helper()
	if !testbed.Await(limit, ok) {
		l.t.Fatalf("%s: not within %v; hooks called: %s", what, limit, l.story())
	}
}

// UntilCalls waits for the nth call of an event and returns it.
func (l *Lab) UntilCalls(event string, n int) *Call {
	l.t.Helper()
	l.Until(event, func() bool { return len(l.Calls(event)) >= n })
	return l.Calls(event)[n-1]
}

// Within checks a duration.
func (l *Lab) Within(what string, got, low, high time.Duration) {
	l.t.Helper()
	if got < low || got > high {
		l.t.Errorf("%s: after %v, want between %v and %v", what, got, low, high)
	}
}

// Holds waits until a file holds a text.
func (l *Lab) Holds(path, text string) {
	l.t.Helper()
	l.Until(path+" holds "+text, func() bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(data), text)
	})
}

func (l *Lab) story() string {
	var names []string
	for _, c := range l.Calls() {
		names = append(names, c.Event)
	}
	return strings.Join(names, " ")
}

// Open lets replies pass that wait at a gate, now and later.
func (l *Lab) Open(gate string) { close(l.hooks.gate(gate)) }

// pace is how long this client on this machine may need for a step that
// shows nothing to the outside: as long as its start took. A test that has to
// see that nothing happens waits that long.
func (l *Lab) pace() time.Duration {
	least := 500 * time.Millisecond
	if !l.client.real {
		least = 200 * time.Millisecond
	}
	calls := l.Calls("SessionStart")
	if len(calls) == 0 || len(l.started) == 0 {
		return 2 * least
	}
	return min(max(least, calls[0].At.Sub(l.started[0].began)), 4*time.Second)
}

// Quiet waits until no hook runs, but those that wait for the test, and no
// hook or model has been called for so many paces.
func (l *Lab) Quiet(paces int) {
	l.t.Helper()
	seen, since := -1, time.Now()
	l.Until("quiet", func() bool {
		calls := l.Calls()
		n := len(calls) + l.requests()
		if n != seen || slices.ContainsFunc(calls, (*Call).Busy) {
			seen, since = n, time.Now()
		}
		return time.Since(since) >= time.Duration(paces)*l.pace()
	})
}

// replies says what the calls of hooks do: the nth call of "Event" or
// "Event/tag" gets its nth reply; calls beyond them, and other hooks, do nothing.
type replies map[string][]Reply

// script is the function that newLab wants. Each call starts anew.
func (r replies) script() func(*Call) Reply {
	var mu sync.Mutex
	used := map[string]int{}
	return func(c *Call) Reply {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range []string{c.Event, c.Event + "/" + c.Tag} {
			if n := used[key]; n < len(r[key]) {
				used[key]++
				return r[key][n]
			}
		}
		return Reply{}
	}
}
