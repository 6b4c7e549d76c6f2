package ptyrun

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// roleVariable makes the test binary another program: one that holds a child,
// as a process of its own, since the subreaper is the process.
const roleVariable = "PTYRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	var args []string
	_ = json.Unmarshal([]byte(os.Getenv("PTYRUN_TEST_ARGS")), &args)
	role := os.Getenv(roleVariable)
	os.Unsetenv(roleVariable)
	switch role {
	case "hold":
		os.Exit(hold(args))
	case "run":
		os.Exit(runRole(args))
	case "limit":
		os.Exit(limited(args))
	case "sweep":
		os.Exit(sweep())
	}
	os.Exit(testbed.Run(m))
}

// hold starts a child, says its pid, and ends it at the first line of stdin:
// "end" at once, "wait" after its exit.
func hold(argv []string) int {
	ctx := context.Background()
	child, err := Start(ctx, Config{
		Argv: argv, Env: append(os.Environ(), "HEARTBEAT_SESSION="+os.Getenv("PTYRUN_TEST_COOKIE")),
		Grace: 300 * time.Millisecond, Group: os.Getenv("PTYRUN_TEST_GROUP"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(Process{PID: child.PID(), Start: child.start})
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if line == "wait\n" {
		<-child.Done()
	}
	if err := out.Encode(child.End(ctx)); err != nil {
		return 1
	}
	return 0
}

// ended is what limited says.
type ended struct {
	Unlimited string
	Group     string
	Exit      Exit
}

// limited makes room, runs a command with limits, and says how it ended.
func limited(argv []string) int {
	var l Limits
	if err := json.Unmarshal([]byte(os.Getenv("PTYRUN_TEST_LIMITS")), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := MakeRoom(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	group := PlanGroup()
	child, err := Start(context.Background(), Config{
		Argv: argv, Env: append(os.Environ(), "GROUP="+group), Grace: 300 * time.Millisecond, Group: group, Limits: l,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e := ended{Group: group}
	if err := child.Unlimited(); err != nil {
		e.Unlimited = err.Error()
	}
	<-child.Done()
	e.Exit = child.End(context.Background())
	_ = json.NewEncoder(os.Stdout).Encode(e)
	return 0
}

// sweep sweeps by the cookie of its own session.
func sweep() int {
	swept, err := Sweep(context.Background(), Remains{Cookie: os.Getenv("PTYRUN_TEST_COOKIE")}, time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, p := range swept {
		fmt.Println("swept", p.Command)
	}
	return 0
}

// runRole is heartbeat-launch: flags as Go durations and words, then "--".
func runRole(args []string) int {
	cfg := RunConfig{Grace: 300 * time.Millisecond}
	for len(args) > 0 && args[0] != "--" {
		name, value, _ := strings.Cut(args[0], "=")
		switch name {
		case "timeout":
			cfg.Timeout, _ = time.ParseDuration(value)
		case "grace":
			cfg.Grace, _ = time.ParseDuration(value)
		case "exit-signal":
			cfg.ExitSignal = value
		case "exit-with":
			cfg.ExitWith = ExitWith(value)
		case "idle-timeout":
			cfg.IdleTimeout, _ = time.ParseDuration(value)
		case "max-idle-retries":
			cfg.MaxIdleRetries, _ = strconv.Atoi(value)
		case "cwd":
			cfg.Dir = value
		case "interactive":
			cfg.Interactive = true
		}
		args = args[1:]
	}
	cfg.Argv = args[1:]
	code, err := Run(context.Background(), cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// role is the test binary as another program.
func role(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+name, "PTYRUN_TEST_ARGS="+string(data))
	cmd.Stderr = t.Output()
	return cmd
}

// within polls until ok holds; it fails the test after ten seconds.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !testbed.Await(testbed.Patience, ok) {
		t.Fatalf("not within %v: %s", testbed.Patience, what)
	}
}

// tree is a script that becomes a tree of processes, each of which writes its
// pid to a file: the main one, and a sleeper for each way of leaving it.
type tree struct {
	t    *testing.T
	file string
	argv []string
}

// treeSize is main, fg or last, own group, setsid, HUP ignored, double-forked
// with TERM and HUP ignored, and the same with an empty environment.
const treeSize = 7

// newTree makes a tree whose main process runs until the last command ends:
// "$live" sleeps in the foreground.
func newTree(t *testing.T, last string) tree {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pids")
	script := `
live='echo $$ >>"` + file + `"; exec sleep 1000'
echo $$ >>"` + file + `"
set -m
sh -c "$live" &
set +m
setsid sh -c "$live" &
(trap '' HUP; exec sh -c "$live") &
( (trap '' TERM HUP; exec setsid sh -c "$live") & )
( (trap '' TERM HUP; exec env -i PATH="$PATH" setsid sh -c "$live") & )
` + last
	return tree{t, file, []string{"bash", "-c", script}}
}

// up waits until all processes of the tree have said their pid.
func (tr tree) up() []Process {
	tr.t.Helper()
	procs, _ := tr.upBefore(nil)
	return procs
}

// upBefore is up; false: the tree was ended before all of it ran.
func (tr tree) upBefore(ended <-chan struct{}) ([]Process, bool) {
	tr.t.Helper()
	var procs []Process
	within(tr.t, "the whole tree runs", func() bool {
		if closed(ended) {
			return true
		}
		procs = procs[:0]
		data, _ := os.ReadFile(tr.file)
		for line := range strings.Lines(string(data)) {
			pid, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return false
			}
			start, err := StartTimeOf(pid)
			if err != nil {
				start = 0
			}
			procs = append(procs, Process{PID: pid, Start: start})
		}
		return len(procs) == treeSize
	})
	return procs, len(procs) == treeSize && !slices.ContainsFunc(procs, func(p Process) bool { return p.Start == 0 })
}

// alive returns those of procs that still run.
func alive(procs []Process) []Process {
	var left []Process
	for _, p := range procs {
		if start, err := StartTimeOf(p.PID); err == nil && start == p.Start {
			left = append(left, p)
		}
	}
	return left
}

func requireGone(t *testing.T, procs []Process) {
	t.Helper()
	for _, p := range alive(procs) {
		t.Errorf("process %d survived", p.PID)
	}
	if t.Failed() {
		for _, p := range alive(procs) {
			if proc, err := os.FindProcess(p.PID); err == nil {
				_ = proc.Kill()
			}
		}
	}
}

func readJSON[T any](t *testing.T, r *json.Decoder) T {
	t.Helper()
	var v T
	if err := r.Decode(&v); err != nil {
		t.Fatalf("cannot read what the other program says: %v", err)
	}
	return v
}

// holder is a running "hold" program.
type holder struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	child Process
}

func startHolder(t *testing.T, cookie string, argv []string, env ...string) *holder {
	t.Helper()
	h := &holder{cmd: role(t, "hold", argv...)}
	h.cmd.Env = append(append(h.cmd.Env, "PTYRUN_TEST_COOKIE="+cookie), env...)
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	h.out = json.NewDecoder(stdout)
	h.child = readJSON[Process](t, h.out)
	return h
}

// end tells the holder how to end its child.
func (h *holder) end(t *testing.T, how string) Exit {
	t.Helper()
	if _, err := io.WriteString(h.in, how+"\n"); err != nil {
		t.Fatal(err)
	}
	return readJSON[Exit](t, h.out)
}
