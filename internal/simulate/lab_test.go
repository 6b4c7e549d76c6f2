package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"heartbeat/internal/testbed"
)

// lab is a throw-away home and workspace. Every event has a hook that writes
// its payload down; a test adds its own.
type lab struct {
	t          *testing.T
	dir        string
	home, work string
	settings   map[string]any
	env        []string
	script     string
}

const recorder = `in=$(cat); printf '%s\n' "$in" >>"$LAB/hooks.log"`

func newLab(t *testing.T) *lab {
	t.Helper()
	dir := t.TempDir()
	l := &lab{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	for _, d := range []string{filepath.Join(l.home, ".claude"), filepath.Join(l.work, ".claude")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hooks := map[string]any{}
	for _, e := range []string{
		"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "SubagentStart", "SubagentStop",
		"Notification", "PermissionRequest", "PreToolUse", "PostToolUse", "PostToolUseFailure",
	} {
		hooks[e] = command(recorder)
	}
	l.settings = map[string]any{"hooks": hooks}
	l.script = `{"think": "1ms", "transcript-delay": "5ms"}`
	return l
}

func command(sh string, more ...any) []any {
	h := map[string]any{"type": "command", "command": sh}
	for i := 0; i+1 < len(more); i += 2 {
		h[more[i].(string)] = more[i+1]
	}
	return []any{map[string]any{"hooks": []any{h}}}
}

// on replaces an event's hook; the payload is still written down first, and
// $n says how often the event was fired.
func (l *lab) on(event, sh string, more ...any) *lab {
	count := `n=$(($(cat "$LAB/n.` + event + `" 2>/dev/null || echo 0)+1)); echo $n >"$LAB/n.` + event + `"; `
	l.settings["hooks"].(map[string]any)[event] = command(recorder+"; "+count+sh, more...)
	return l
}

func (l *lab) set(key string, value any) *lab { l.settings[key] = value; return l }

// rules makes the model follow rules, a JSON list.
func (l *lab) rules(rules string, options ...string) *lab {
	l.script = `{"think": "1ms", "transcript-delay": "5ms", ` + strings.Join(append(options, `"rules": `+rules), ", ") + `}`
	return l
}

func (l *lab) write(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// client is a running client.
type client struct {
	*lab
	cmd    *exec.Cmd
	tty    *os.File
	exited chan struct{}

	mu     sync.Mutex
	screen bytes.Buffer
}

func (l *lab) command(args []string) *exec.Cmd {
	l.t.Helper()
	settings, err := json.Marshal(l.settings)
	if err != nil {
		l.t.Fatal(err)
	}
	args = append([]string{
		"--settings", l.write("settings.json", string(settings)),
		"--script", l.write("script.json", l.script), "--max-time", "10m",
	}, args...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = l.work
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "LAB=" + l.dir, asClient + "=1",
		"SIMULATE_LOG=" + filepath.Join(l.dir, "model.log"),
	}, l.env...)
	return cmd
}

// start runs the client in a terminal.
func (l *lab) start(args ...string) *client {
	l.t.Helper()
	c := &client{lab: l, cmd: l.command(args), exited: make(chan struct{})}
	var err error
	if c.tty, err = pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 50, Cols: 200}); err != nil {
		l.t.Fatal(err)
	}
	c.pollable()
	go c.drain()
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait()
	}()
	l.t.Cleanup(func() {
		// SIGKILL would leave hooks behind that write into the directory.
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.exited:
		case <-time.After(testbed.Patience):
			_ = c.cmd.Process.Kill()
			<-c.exited
		}
		_ = c.tty.Close()
	})
	return c
}

// pollable makes the terminal's Close end a Read; creack/pty leaves it
// blocking.
func (c *client) pollable() {
	c.t.Helper()
	fd, err := syscall.Dup(int(c.tty.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
		err = errors.Join(syscall.SetNonblock(fd, true), c.tty.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.tty = os.NewFile(uintptr(fd), "terminal")
}

func (c *client) drain() {
	buf := make([]byte, 8<<10)
	for {
		n, err := c.tty.Read(buf)
		c.mu.Lock()
		c.screen.Write(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *client) seen(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(c.screen.String(), text)
}

// until polls with a deadline.
func (c *client) until(what string, ok func() bool) {
	c.t.Helper()
	if !testbed.Await(testbed.Patience, ok) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Fatalf("not within %v: %s\nhooks: %s\nscreen: %q", testbed.Patience, what, strings.Join(c.events(), " "), c.screen.String())
	}
}

func (c *client) untilSeen(text string) {
	c.t.Helper()
	c.until("on screen: "+text, func() bool { return c.seen(text) })
}

// untilFired waits until an event was fired n times and gives its last
// payload.
func (c *client) untilFired(event string, n int) payload {
	c.t.Helper()
	c.until(event+" fired", func() bool { return len(c.fired(event)) >= n })
	return c.fired(event)[n-1]
}

func (c *client) keys(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// code waits for the exit status, -1 for a signal.
func (c *client) code() int {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(testbed.Patience):
		c.t.Fatalf("the client did not end; hooks: %s", strings.Join(c.events(), " "))
	}
	return c.cmd.ProcessState.ExitCode()
}

// term ends an idle client and checks that it went well.
func (c *client) term() {
	c.t.Helper()
	c.signal(syscall.SIGTERM)
	if got := c.code(); got != 143 {
		c.t.Fatalf("exit status %d, want 143", got)
	}
}

type payload map[string]any

// payloads are all payloads in the order in which the hooks wrote them.
func (l *lab) payloads() []payload { return readLines[payload](l.t, filepath.Join(l.dir, "hooks.log")) }

func (l *lab) requests() []Request { return readLines[Request](l.t, filepath.Join(l.dir, "model.log")) }

// prompts are the user texts that reached the model, in order.
func (l *lab) prompts() (all []string) {
	for _, r := range l.requests() {
		all = append(all, r.Prompts...)
	}
	return all
}

func (l *lab) fired(event string) (all []payload) {
	for _, p := range l.payloads() {
		if p["hook_event_name"] == event {
			all = append(all, p)
		}
	}
	return all
}

func (l *lab) events() (all []string) {
	for _, p := range l.payloads() {
		all = append(all, p["hook_event_name"].(string))
	}
	return all
}

func (l *lab) wantEvents(want ...string) {
	l.t.Helper()
	if got := l.events(); !slices.Equal(got, want) {
		l.t.Errorf("hooks\n got %v\nwant %v", got, want)
	}
}

func (l *lab) exists(name string) bool {
	_, err := os.Stat(filepath.Join(l.dir, name))
	return err == nil
}

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			continue // still being written
		}
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v in %q", path, err, line)
		}
		all = append(all, v)
	}
	return all
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func chmodX(path string) error { return os.Chmod(path, 0o700) }
