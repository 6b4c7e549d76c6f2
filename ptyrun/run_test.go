package ptyrun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"heartbeat/internal/testbed"
)

// launch runs heartbeat-launch to its end.
func launch(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := role(t, "run", args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(testbed.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "stale")
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "fresh")
	asked := filepath.Join(dir, "asked")
	tests := map[string]struct {
		args []string
		out  string // contained
		code int
	}{
		"terminal size":           {[]string{"--", "sh", "-c", "stty size; echo $COLUMNS $LINES"}, "50 200\r\n200 50", 0},
		"directory, without link": {[]string{"cwd=" + link, "--", "pwd"}, dir + "\r\n", 0},
		"missing directory":       {[]string{"cwd=/no/such", "--", "pwd"}, "", 1},
		"missing command":         {[]string{"--", "no-such-command"}, "", 1},
		"no command":              {[]string{"--"}, "", 1},
		"exit code":               {[]string{"--", "sh", "-c", "exit 7"}, "", 7},
		"capped exit code":        {[]string{"--", "sh", "-c", "exit 200"}, "", 123},
		"killed child":            {[]string{"--", "sh", "-c", "kill -9 $$"}, "", 123},
		"timeout":                 {[]string{"timeout=200ms", "--", "sleep", "99"}, "", 124},
		"timeout, TERM ignored":   {[]string{"timeout=200ms", "--", "sh", "-c", "trap '' TERM; while :; do sleep .1; done"}, "", 124},
		"stale exit signal":       {[]string{"exit-signal=" + stale, "--", "sh", "-c", "sleep .3; exit 6"}, "", 6},
		"exit signal forces 0":    {[]string{"exit-signal=" + fresh, "--", "sh", "-c", "trap 'exit 9' TERM; touch " + fresh + "; while :; do sleep .05; done"}, "", 0},
		"exit command":            {[]string{"exit-with=command", "exit-signal=" + asked, "--", "sh", "-c", "touch " + asked + "; read -r line; echo got:$line; exit 9"}, "got:/exit", 0},
		"unknown way out":         {[]string{"exit-with=prayer", "--", "true"}, "", 1},
		"nudged, then stalled":    {[]string{"idle-timeout=300ms", "max-idle-retries=2", "--", "sh", "-c", "stty -echo; cat"}, "Continue", 125},
		"stalled without retries": {[]string{"idle-timeout=100ms", "max-idle-retries=-1", "--", "sleep", "99"}, "", 125},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := launch(t, tt.args...)
			if code != tt.code || !strings.Contains(out, tt.out) {
				t.Errorf("exit code %d after %q, want %d after %q", code, out, tt.code, tt.out)
			}
		})
	}
}

// A child that has come to hear it when the timeout ends it, which takes longer on a busy
// machine, hears TERM first.
func TestRunTimeoutFirstSaysTERM(t *testing.T) {
	t.Parallel()
	for timeout := 300 * time.Millisecond; timeout < testbed.Patience; timeout *= 2 {
		out, code := launch(t, "timeout="+timeout.String(), "--", "sh", "-c", "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep .05; done")
		if code != 124 {
			t.Errorf("exit code %d after %q, want 124", code, out)
		}
		if strings.Contains(out, "ready") {
			if !strings.Contains(out, "bye") {
				t.Errorf("it heard nothing: %q", out)
			}
			return
		}
	}
	t.Error("the child never began")
}

// A broken stdout stops the forwarding, not the child.
func TestRunBrokenStdout(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	cmd := role(t, "run", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep .05; done; touch "+done+"; exit 4")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	_, _ = r.Read(make([]byte, 1))
	_ = r.Close()
	_ = cmd.Wait()
	if _, err := os.Stat(done); err != nil || cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("the child did not finish: %v, %v", cmd.ProcessState, err)
	}
}

// A second signal cuts the grace short.
func TestRunHurried(t *testing.T) {
	t.Parallel()
	cmd := role(t, "run", "grace=1h", "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep .05; done")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	within(t, "the end", func() bool {
		_ = cmd.Process.Signal(os.Interrupt)
		return closed(exited)
	})
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// With a terminal as stdin and stdout keys get through at once, and the
// window's size follows.
func TestRunInteractive(t *testing.T) {
	t.Parallel()
	cmd := role(t, "run", "interactive", "--", "sh", "-c",
		"stty size; stty raw -echo; echo ready; head -c 1 | od -c; while [ \"$(stty size)\" = '30 90' ]; do sleep .05; done; stty size; echo c:$COLUMNS; head -c 1 >/dev/null; exit 3")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Close() }()
	out := &testbed.Output{}
	copied := make(chan struct{})
	go func() { _, _ = io.Copy(out, master); close(copied) }()
	shows := func(text string) {
		t.Helper()
		within(t, "shows "+text, func() bool { return strings.Contains(out.String(), text) })
	}
	shows("30 90")
	shows("ready")
	if err := pty.Setsize(master, &pty.Winsize{Rows: 31, Cols: 91}); err != nil {
		t.Fatal(err)
	}
	key := func(k string) {
		if _, err := io.WriteString(master, k); err != nil {
			t.Error(err)
		}
	}
	key("\x03") // no signal: the terminal is raw
	shows("003")
	shows("31 91")
	shows("c:\n")
	key("x")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d after %q", code, out.String())
	}
	_ = master.Close()
	<-copied
}

// Input that ends is the end of the child's input.
func TestRunInteractivePipe(t *testing.T) {
	t.Parallel()
	cmd := role(t, "run", "interactive", "--", "sh", "-c", "cat; exit 8")
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 8 || !bytes.Contains(out, []byte("two")) {
		t.Errorf("exit code %d (%v) after %q", code, err, out)
	}
}

// Input that cannot be read has ended, too: the command waited for ever.
func TestRunInteractiveUnreadable(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	cmd := role(t, "run", "timeout=20s", "interactive", "--", "sh", "-c", "cat; exit 8")
	cmd.Stdin = dir
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 8 {
		t.Errorf("exit code %d", code)
	}
}

func TestNudger(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	type look struct {
		now, last float64 // seconds
		want      nudge
	}
	tests := map[string]struct {
		timeout float64
		retries int
		looks   []look
	}{
		"off":              {0, 3, []look{{1e6, 0, keepWaiting}}},
		"output goes on":   {10, 3, []look{{9, 0, keepWaiting}, {15, 9, keepWaiting}, {100, 95, keepWaiting}}},
		"retries are used": {10, 2, []look{{10, 0, typePrompt}, {19, 0, keepWaiting}, {20, 0, typePrompt}, {30, 0, giveUp}}},
		"no retries":       {10, 0, []look{{10, 0, giveUp}}},
		"the echo is no recovery": {30, 1, []look{
			{30, 0, typePrompt}, {31, 30.1, keepWaiting}, {60.2, 30.1, giveUp},
		}},
		"an echo puts the silence off": {30, 1, []look{
			{30, 0, typePrompt}, {60, 49, keepWaiting}, {79, 49, giveUp},
		}},
		"real output is": {30, 1, []look{
			{30, 0, typePrompt}, {60, 55, keepWaiting}, {85, 55, typePrompt}, {115, 55, giveUp},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := nudger{timeout: time.Duration(tt.timeout * float64(time.Second)), retries: tt.retries}
			for i, l := range tt.looks {
				if got := n.look(at(l.now), at(l.last)); got != l.want {
					t.Errorf("look %d is %d, want %d", i, got, l.want)
				}
			}
		})
	}
}

// A hook that had ended a moment ago was not seen any more, and the client that it
// had given a prompt was ended as stalled.
func TestAHookThatHasJustEndedIsNoSilence(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	n := nudger{timeout: 10 * time.Second}
	for i, l := range []struct {
		after int // seconds
		hook  bool
		want  nudge
	}{{9, false, keepWaiting}, {10, true, keepWaiting}, {20, true, keepWaiting}, {30, false, keepWaiting}, {39, false, keepWaiting}, {40, false, giveUp}} {
		now := begin.Add(time.Duration(l.after) * time.Second)
		if n.silent(now, begin) {
			n.sees(l.hook, now)
		}
		if got := n.look(now, begin); got != l.want {
			t.Errorf("look %d is %d, want %d", i, got, l.want)
		}
	}
}

func TestCleanEnv(t *testing.T) {
	t.Parallel()
	got := CleanEnv([]string{
		"PATH=/bin", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=x", "AI_AGENT=y", "HEARTBEAT_SESSION=s",
		"HEARTBEAT_HOME=h", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SESSION_ATTENDED=1",
		"CLAUDE_CODE_CHILD_NOTES_DIR=/n", "CLAUDE_ENV_FILE=/e", "CLAUDE_CODE_SESSION_KIND=bg", "CLAUDE_JOB_DIR=/j",
		"CLAUDE_CODE_RETRY_WATCHDOG=1", "CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS=9", "CLAUDE_CODE_RETRY_WATCHDOG_SCOPE=x",
		"NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_PID=1", "WATCHDOG_USEC=9", "LISTEN_FDS=1", "LISTEN_PID=1",
		"CLAUDE_EFFORT=high", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1",
		"CLAUDE_STREAM_IDLE_TIMEOUT_MS=1", "ANTHROPIC_BASE_URL=http://x/?a=b", "CLAUDECODE_NOT=1", "CLAUDE_CODE_RETRY_WATCHDOGS=1",
		"TERM=dumb", "COLUMNS=7", "LINES=8", "EMPTY=",
	})
	want := []string{
		"PATH=/bin", "CLAUDE_EFFORT=high", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1",
		"CLAUDE_STREAM_IDLE_TIMEOUT_MS=1", "ANTHROPIC_BASE_URL=http://x/?a=b", "CLAUDECODE_NOT=1", "CLAUDE_CODE_RETRY_WATCHDOGS=1",
		"EMPTY=", "TERM=xterm-256color", "COLUMNS=200", "LINES=50",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := CleanEnv([]string{"TERM=screen"}); got[0] != "TERM=screen" {
		t.Errorf("got %q", got)
	}
	out, _ := run(t, Config{Argv: []string{"env"}, Env: append(want, "PATH=/bin:/usr/bin", "HEARTBEAT_TREE=outer")})
	if !strings.Contains(out, "HEARTBEAT_TREE=outer:") {
		t.Errorf("the outer tree's mark is lost: %q", out)
	}
}

// closure never takes this process or its ancestors, whatever root says, nor
// goes through them.
func TestClosure(t *testing.T) {
	t.Parallel()
	proc := func(pid, ppid int, zombie bool) process {
		return process{identity: identity{pid, 1}, ppid: ppid, zombie: zombie}
	}
	procs := []process{
		proc(1, 0, false), proc(10, 1, false), proc(20, 10, false), // 20 is us
		proc(30, 20, false), proc(31, 30, false), proc(32, 30, true), proc(33, 32, false),
		proc(40, 10, false), proc(50, 1, false), proc(51, 50, false),
	}
	pids := func(root func(process) bool) string {
		var s []string
		for _, p := range closure(procs, 20, root) {
			s = append(s, fmt.Sprint(p.pid))
		}
		slices.Sort(s)
		return strings.Join(s, " ")
	}
	tests := map[string]struct {
		roots []int
		want  string
	}{
		"all":       {[]int{1, 10, 20, 30, 31, 32, 33, 40, 50, 51}, "30 31 33 40 50 51"},
		"ancestors": {[]int{1, 10, 20}, ""},
		"subtree":   {[]int{30}, "30 31"},
		"other":     {[]int{50}, "50 51"},
	}
	for name, tt := range tests {
		if got := pids(func(p process) bool { return slices.Contains(tt.roots, p.pid) }); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Sweep leaves alone the session that it runs in itself.
func TestSweepSparesAncestors(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `(sleep 100 & p=$!; echo $p; while test -e /proc/$p/comm && ! grep -q sleep /proc/$p/comm; do :; done); "$0"; echo alive`, os.Args[0])
	cookie := mark()
	cmd.Env = append(os.Environ(), "HEARTBEAT_SESSION="+cookie, roleVariable+"=sweep", "PTYRUN_TEST_COOKIE="+cookie)
	out, err := cmd.Output()
	if err != nil || !strings.HasSuffix(string(out), "swept sleep\nalive\n") {
		t.Errorf("got %q, %v", out, err)
	}
}
