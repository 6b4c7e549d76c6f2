package proof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/queue"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/state"
	"heartbeat/ptyrun"
)

// long is what no check of these tests may take.
const long = testbed.Patience

func check(t *testing.T, script string) Check {
	t.Helper()
	return Check{
		Agent: "a", Key: "a-1", Delivery: "d", Iteration: 1, Argv: []string{"sh", "-c", script},
		Dir: t.TempDir(), Timeout: long, StateDir: t.TempDir(),
	}
}

func run(t *testing.T, c Check) Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if left := notes(c.StateDir); len(left) > 0 {
		t.Errorf("notes are left: %v", left)
	}
	return r
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Result{
		"echo fine":                     {Answer: Passed, Output: "fine"},
		"echo out; echo err >&2":        {Answer: Passed, Output: "out\nerr"},
		"echo 2 tests fail; exit 1":     {Answer: Failed, Why: "exit status 1", Output: "2 tests fail"},
		"exit 75":                       {Answer: Later, Why: "exit status 75"},
		"kill -9 $$":                    {Answer: Failed, Why: "killed by SIGKILL"},
		"printf '\\033[31mred\\033[0m'": {Answer: Passed, Output: "red"},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			got := run(t, check(t, script))
			if got.Answer != want.Answer || got.Why != want.Why || got.Output != want.Output {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestWhatCannotRunIsSaidPlainly: people read "fork/exec …: no such file or directory" of
// a file that stood there.
func TestWhatCannotRunIsSaidPlainly(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"missing":        {"", 0, "./it is not found in DIR"},
		"a folder":       {"", os.ModeDir, "./it is a folder, not a program"},
		"not executable": {"true", 0o600, "./it is not executable: chmod +x DIR/it"},
		"no interpreter": {"#!/no/such/sh\n", 0o700, "./it cannot be started: the interpreter of its first line is not found"},
		"no program":     {"text\n", 0o700, "./it cannot be started: it is not a program, and its first line names no interpreter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := check(t, "true")
			c.Argv = []string{"./it"}
			var err error
			switch path := filepath.Join(c.Dir, "it"); {
			case of.mode == os.ModeDir:
				err = os.Mkdir(path, 0o700)
			case of.mode != 0:
				err = os.WriteFile(path, []byte(of.text), of.mode)
			}
			if err != nil {
				t.Fatal(err)
			}
			if r := run(t, c); r.Answer != Trouble || strings.ReplaceAll(r.Why, c.Dir, "DIR") != of.want {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestAProgramThatMayNotBeRunIsNamed: it was said not to be there, and a person looked for
// it in vain.
func TestAProgramThatMayNotBeRunIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "verify")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"verify": "cannot run verify: run " + path + ": permission denied",
		"none":   "none is not found in PATH",
	} {
		if _, err := lookUp([]string{word}, t.TempDir(), []string{"PATH=" + dir}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestWhatCannotRunIsTrouble(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Check){
		"not in PATH":    func(c *Check) { c.Argv = []string{"no-such-program-here"} },
		"not there":      func(c *Check) { c.Argv = []string{"/no/such/program"} },
		"not executable": func(c *Check) { c.Argv = []string{plain} },
		"blank":          func(c *Check) { c.Argv = []string{" "} },
		"no directory":   func(c *Check) { c.Dir = filepath.Join(c.Dir, "gone") },
		"a link instead of the directory": func(c *Check) {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(c.Dir, link); err != nil {
				t.Fatal(err)
			}
			c.Dir = link
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := check(t, "true")
			change(&c)
			if r := run(t, c); r.Answer != Trouble || r.Why == "" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestEnvironment: a check gets nothing of the scheduler's but where programs are.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SCHEDULER", "x")
	c := check(t, "env | sed 's/=.*//' | sort")
	c.Env = []string{"MINE=1"}
	r := run(t, c)
	for name := range strings.FieldsSeq(r.Output) {
		switch name {
		case "AGENT_DIR", "PATH", "HOME", "LANG", "MINE", cookieVariable:
		case "PWD", "SHLVL", "_", "OLDPWD": // the shell's own
		default:
			t.Errorf("it gets %s", name)
		}
	}
	if !strings.Contains(r.Output, "MINE") || !strings.Contains(r.Output, "AGENT_DIR") {
		t.Errorf("got %q", r.Output)
	}
}

// alive is false for a process that has ended, also where nobody has waited for it yet.
func alive(pid int) bool {
	_, err := ptyrun.StartTimeOf(pid)
	return err == nil
}

// pidIn awaits a pid that a check writes into a file.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	if !testbed.Await(testbed.Patience, func() bool {
		data, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0 && strings.HasSuffix(string(data), "\n")
	}) {
		t.Fatal("the check has not started it")
	}
	return pid
}

// TestNothingIsLeft: what a check has started in the background is ended with it,
// and holds nothing up.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a child":              "sleep 1000 & echo $! > pid",
		"of another session":   "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done",
		"that ignores SIGTERM": "sh -c 'trap \"\" TERM; echo $$ > pid; sleep 1000' & while [ ! -s pid ]; do :; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := check(t, script)
			if r := run(t, c); r.Answer != Passed {
				t.Fatalf("got %+v", r)
			}
			pid := pidIn(t, filepath.Join(c.Dir, "pid"))
			if !testbed.Await(testbed.Patience, func() bool { return !alive(pid) }) {
				t.Errorf("process %d lives", pid)
			}
		})
	}
}

func TestTimeOut(t *testing.T) {
	t.Parallel()
	c := check(t, "echo 3 of 5; sleep 1000")
	c.Timeout = 300 * time.Millisecond
	r := run(t, c)
	if r.Answer != Failed || r.Why != "it ran over 300ms" {
		t.Errorf("got %+v", r)
	}
}

func TestAStopGivesNoAnswer(t *testing.T) {
	t.Parallel()
	c := check(t, "echo $$ > pid; sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	go func() {
		pidIn(t, filepath.Join(c.Dir, "pid"))
		cancel(over)
	}()
	if _, err := Run(ctx, c); !errors.Is(err, over) {
		t.Fatalf("got %v", err)
	}
	if left := notes(c.StateDir); len(left) > 0 {
		t.Errorf("notes are left: %v", left)
	}
}

// TestAfterADeadScheduler: what its check has left is ended before the next one of
// the same agent runs, and by Sweep.
func TestAfterADeadScheduler(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(Check) error{
		"the next check": func(c Check) error { _, err := Run(context.Background(), c); return err },
		"Sweep": func(c Check) error {
			agents, err := Sweep(context.Background(), c.StateDir)
			if len(agents) != 1 || agents[0] != "a" {
				err = errors.Join(err, fmt.Errorf("swept %v", agents))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := check(t, "echo $$ > pid; sleep 1000")
			n := newNote(c)
			if err := n.save(); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = n.run(context.Background(), c, "/bin/sh", environment(c, n.Cookie))
			}()
			pid := pidIn(t, filepath.Join(c.Dir, "pid"))
			noted := func() bool { // a scheduler that has died writes nothing later
				var saved note
				return state.Load(n.path, &saved) == nil && saved.PID == pid
			}
			if !testbed.Await(testbed.Patience, noted) || Has(c.StateDir, ptyrun.Lineage(pid)) != "a" {
				t.Errorf("process %d is of agent %q", pid, Has(c.StateDir, ptyrun.Lineage(pid)))
			}
			if got := Has(c.StateDir, ptyrun.Lineage(os.Getpid())); got != "" {
				t.Errorf("this process is of agent %q", got)
			}
			after := c
			after.Argv = []string{"true"}
			if err := next(after); err != nil {
				t.Fatal(err)
			}
			<-done
			if alive(pid) {
				t.Errorf("process %d lives", pid)
			}
			if left := notes(c.StateDir); len(left) > 0 {
				t.Errorf("notes are left: %v", left)
			}
		})
	}
}

// TestAStrayBelongsToItsCheck: what a check has started and left to itself is the
// agent's, too.
func TestAStrayBelongsToItsCheck(t *testing.T) {
	t.Parallel()
	c := check(t, "true")
	n := newNote(c)
	if err := n.save(); err != nil {
		t.Fatal(err)
	}
	for cookie, want := range map[string]string{n.Cookie: "a", "check-of-another": ""} {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), cookieVariable + "=" + cookie}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if got := Has(c.StateDir, ptyrun.Lineage(cmd.Process.Pid)); got != want {
			t.Errorf("%s: of agent %q, want %q", cookie, got, want)
		}
	}
}

// TestSweepLeavesTheChecksOfAnotherRun: two runs of a fleet, with different agents, have
// one state directory.
func TestSweepLeavesTheChecksOfAnotherRun(t *testing.T) {
	t.Parallel()
	c := check(t, "true")
	n := newNote(c)
	n.Scheduler = os.Getppid()
	var err error
	if n.After, err = ptyrun.StartTimeOf(n.Scheduler); err != nil {
		t.Fatal(err)
	}
	if err := n.save(); err != nil {
		t.Fatal(err)
	}
	for _, alive := range []bool{true, false} {
		if !alive {
			n.After++ // another process has its number by now
			if err := n.save(); err != nil {
				t.Fatal(err)
			}
		}
		agents, err := Sweep(t.Context(), c.StateDir)
		if left := len(notes(c.StateDir)) == 1; err != nil || left != alive || (len(agents) == 0) != alive {
			t.Errorf("alive %t: swept %v, %v, left %t", alive, agents, err, left)
		}
	}
}

func TestDamagedNoteIsPutAside(t *testing.T) {
	t.Parallel()
	c := check(t, "true")
	path := notePath(c.StateDir, c.Key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c); r.Answer != Passed {
		t.Errorf("got %+v", r)
	}
}

// TestSaid: the digest leaves digits out, and takes everything else in.
func TestSaid(t *testing.T) {
	t.Parallel()
	said := func(text string) string {
		l := newListener()
		l.hear(strings.NewReader(text))
		return l.digest()
	}
	if said("FAIL in 0.31s") != said("FAIL in 12.07s") {
		t.Error("digits make a difference")
	}
	if said("FAIL a") == said("FAIL b") || said(strings.Repeat("x", 200<<10)) == said("y"+strings.Repeat("x", 200<<10)) {
		t.Error("other characters make none")
	}
}

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	r := run(t, check(t, "yes 'a line of it' | head -c 3000000; echo; echo the end; exit 2"))
	if r.Answer != Failed || len(r.Output) > queue.MaxShown || len(r.Output) < queue.MaxShown/2 || !strings.HasSuffix(r.Output, "\nthe end") {
		t.Errorf("got %s, %d bytes, %q...", r.Answer, len(r.Output), r.Output[:min(40, len(r.Output))])
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	look := func() string {
		t.Helper()
		print := Files(t.Context(), dir)
		if print == "" {
			t.Fatal("it cannot be told")
		}
		return print
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("src/a.go", "package a")
	if err := errors.Join(os.Symlink("/", filepath.Join(dir, "root")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	first := look()
	put(".heartbeat/hook.log", "x")
	put(".git/index", "x")
	if look() != first {
		t.Error("our own files count")
	}
	put("src/a.go", "package b, longer")
	second := look()
	put("src/new", "")
	if third := look(); second == first || third == second {
		t.Error("a change does not count")
	}
	if Files(t.Context(), filepath.Join(dir, "gone")) != "" {
		t.Error("a missing directory can be told")
	}
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l := looker{ctx: t.Context(), sum: newListener().sum, n: maxFiles - 2}
	if err := l.folder(root, "", 0); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
}
