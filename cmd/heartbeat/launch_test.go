package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// What heartbeat-rs's launcher does, by the whole program; the rest stands in
// TestLaunchStatus and in ptyrun.
func TestLaunchAsHeartbeatRS(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		status int
		stdout string // all of it
		stderr string // part of it
	}{
		{"50 rows and 200 columns", []string{"--", "sh", "-c", "stty size; echo $LINES $COLUMNS; test -t 0"}, 0, "50 200\r\n50 200\r\n", ""},
		{"another size", []string{"--rows", "24", "--cols", "80", "--", "sh", "-c", "stty size; echo $LINES $COLUMNS"}, 0, "24 80\r\n\r\n", ""},
		{"columns only", []string{"--cols", "80", "--", "stty", "size"}, 0, "50 80\r\n", ""},
		{"no such size", []string{"--rows", "70000", "--", "true"}, 2, "", "--rows and --cols are numbers from 1 to 65535"},
		{"a link to a directory", []string{"--cwd", "link", "--", "pwd"}, 0, "DIR/real\r\n", ""},
		{"no directory", []string{"--cwd", "none", "--", "true"}, 1, "", `cannot run in "none"`},
		{"a file for a directory", []string{"--cwd", "file", "--", "true"}, 1, "", "directory"},
		{"no timeout", []string{"--timeout", "0", "--", "sh", "-c", "sleep 0.3; echo done"}, 0, "done\r\n", ""},
		{"the group does not heed SIGTERM", []string{
			"--timeout", "500ms", "--grace", "200ms", "--", "sh", "-c", "trap '' TERM; sleep 60 & echo $! >pid; wait; wait",
		}, 124, "", "it took over 500ms"},
		{"the last output", []string{"--", "sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo x; done"}, 0, strings.Repeat("x\r\n", 2000), ""},
		{"no such command", []string{"--", "no-such-command"}, 1, "", "no-such-command"},
		{"nothing that can be run", []string{"--", "./file"}, 1, "", "permission denied"},
		{"exit signal, forced to 0", []string{"--exit-signal", "sig", "--", "sh", "-c", "trap 'exit 9' TERM; touch sig; sleep 60 & wait"}, 0, "", ""},
		{"exit signal by command", []string{"--exit-signal", "sig2", "--exit-with", "command", "--", "sh", "-c", "stty -echo; touch sig2; read -r line; echo got $line; exit 9"}, 0, "got /exit\r\n", ""},
		{"no retries", []string{"--idle-timeout", "300ms", "--max-idle-retries", "0", "--", "cat"}, 125, "", "stays silent"},
		{"its prompts are no recovery", []string{
			"--idle-timeout", "1s", "--max-idle-retries", "2", "--idle-prompt", "Go on", "--", "sh", "-c", "stty -echo -icanon; echo ready; cat",
		}, 125, "ready\r\n" + strings.Repeat("\x1b\x1bGo on\r\n", 2), "stays silent"},
		{"prompts are not typed otherwise", []string{"--queue", "x", "--", "true"}, 2, "", "unknown flag --queue"},
		{"no grace", []string{"--timeout", "300ms", "--grace", "0", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, 124, "", "it took over 300ms"},
		{"a negative timeout", []string{"--timeout=-1s", "--", "true"}, 2, "", "is not a duration"},
		{"a log of another name", []string{"--log", "x.txt", "--", "true"}, 2, "", "does not end with .log"},
		{"a log in no directory", []string{"--log", "none/at/all.log", "--", "true"}, 1, "", "cannot open the log"},
		{"negative retries", []string{"--max-idle-retries=-1", "--", "true"}, 2, "", "--max-idle-retries is below 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("real/x", "")
			w.put("file", "")
			if err := os.Symlink("real", filepath.Join(w.dir, "link")); err != nil {
				t.Fatal(err)
			}
			o := w.run(append([]string{"launch"}, tt.args...)...)
			if want := strings.ReplaceAll(tt.stdout, "DIR", w.dir); o.status != tt.status || o.stdout != want {
				t.Errorf("status %d, want %d; stdout %q, want %q", o.status, tt.status, o.stdout, want)
			}
			if !strings.Contains(o.stderr, tt.stderr) || tt.stderr == "" && o.stderr != "" {
				t.Errorf("stderr %q, want %q", o.stderr, tt.stderr)
			}
		})
	}
}

// A client that waits for a hook of ours (mode persist) is silent on purpose:
// nothing is typed, and it is not ended as stalled.
func TestLaunchTypesNothingWhileAHookWaits(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	for name, status := range map[string]int{"heartbeat-stop": 5, "another": 125} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := os.Symlink(sleep, filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
			o := w.run("launch", "--idle-timeout", "1s", "--max-idle-retries", "0", "--", "sh", "-c", "(./"+name+" 3; true); exit 5")
			if o.status != status || o.stdout != "" {
				t.Errorf("%+v", o)
			}
		})
	}
}

// The log gets all of the output, whatever becomes of stdout.
func TestLaunchLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if o := w.run("launch", "--log", "out.log", "--", "echo", "hi"); o.status != 0 || o.stdout != "hi\r\n" || o.stderr != "" {
		t.Errorf("%+v", o)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	cmd := w.command("launch", "--log", "out.log", "--", "sh", "-c", "echo one; sleep 0.2; echo two")
	cmd.Stdout = full
	if err := cmd.Run(); err != nil {
		t.Errorf("with a full disk: %v", err)
	}
	if got := w.get("out.log"); got != "hi\r\none\r\ntwo\r\n" {
		t.Errorf("logged %q", got)
	}
}

// A reader that goes away does not end the command.
func TestLaunchBrokenStdout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := w.command("launch", "--", "sh", "-c", "echo one; sleep .2; echo two; sleep .2; touch lived; exit 5")
	cmd.Stdout = out
	_ = cmd.Run()
	out.Close()
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("status %d, want the command's", code)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "lived")); err != nil {
		t.Error(err)
	}
}

// Marks of the session that we run in are not passed on; everything else is.
func TestLaunchEnvironment(t *testing.T) {
	t.Parallel()
	dropped := []string{
		"CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH",
		"CLAUDECODE", "AI_AGENT", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_ENV_FILE",
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS",
	}
	kept := []string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "CLAUDE_EFFORT", "ANTHROPIC_BASE_URL", "ANYTHING"}
	w := newWorld(t)
	for _, name := range append(dropped, kept...) {
		w.env = append(w.env, name+"=of-the-caller")
	}
	got := strings.Split(w.ok("launch", "--", "env"), "\r\n")
	has := func(name string) bool {
		return slices.Contains(got, name+"=of-the-caller")
	}
	for _, name := range dropped {
		if has(name) {
			t.Errorf("%s is passed on", name)
		}
	}
	for _, name := range kept {
		if !has(name) {
			t.Errorf("%s is not passed on", name)
		}
	}
}

// From the exit signal to the end the program looks ten times a second.
func TestLaunchExitSignalIsQuick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.command("launch", "--exit-signal", "now", "--", "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the command runs", func() bool { return children(cmd.Process.Pid) > 0 })
	began := time.Now()
	w.put("now", "")
	if err := cmd.Wait(); err != nil {
		t.Errorf("status: %v", err)
	}
	if took := time.Since(began); took > testbed.Patience {
		t.Errorf("it took %v", took)
	}
}

// children counts a process's children, where the system lists them.
func children(pid int) int {
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	return len(strings.Fields(string(out)))
}
