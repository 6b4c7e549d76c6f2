package poll

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/sources"
)

func sh(t *testing.T, script string) Command {
	t.Helper()
	return Command{Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(), Timeout: 20 * time.Second}
}

func TestExec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, out, err string
		later                  bool
	}{
		{name: "output", script: "echo hello; echo noise >&2", out: "hello\n"},
		{name: "nothing", script: "true"},
		{name: "no standard input", script: "cat", out: ""},
		{name: "its directory", script: "ls -d ../*/ >/dev/null && basename $PWD >/dev/null && touch here && ls", out: "here\n"},
		{name: "later", script: "echo half; exit 75", later: true},
		{name: "failure", script: "echo a; echo why it failed >&2; exit 3", err: "the command failed: exit status 3; it said: why it failed"},
		{name: "silent failure", script: "exit 1", err: "the command failed: exit status 1"},
		{name: "signal", script: "kill -TERM $$", err: "signal: terminated"},
		{name: "long complaint", script: `i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`, err: "line 1999"},
		{name: "ugly complaint", script: `printf 'a\033[2Jb\n\nc' >&2; exit 1`, err: "it said: a\uFFFD[2Jb c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := Exec(t.Context(), sh(t, c.script))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || len(err.Error()) > stderrTail+200 {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || string(out.Stdout) != c.out || out.Later != c.later {
				t.Errorf("got %q, %v, %v; want %q, %v", out.Stdout, out.Later, err, c.out, c.later)
			}
		})
	}
}

func TestExecEnvironmentAndPaths(t *testing.T) {
	t.Parallel()
	c := Command{Argv: []string{"./next.sh", "$HOME", "a b"}, Dir: t.TempDir(), Env: []string{"HEARTBEAT_AGENT=triage", "PATH=/usr/bin:/bin"}}
	script := "#!/bin/sh\necho \"$HEARTBEAT_AGENT|$1|$2|$SECRET\"\n"
	if err := os.WriteFile(filepath.Join(c.Dir, "next.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Logf("in %s", c.Dir)
	var out Output
	var err error
	for range 100 { // another test's fork may hold the script open for writing
		if out, err = Exec(t.Context(), c); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
	}
	if err != nil || string(out.Stdout) != "triage|$HOME|a b|\n" {
		t.Errorf("got %q, %v", out.Stdout, err)
	}
	for _, argv := range [][]string{nil, {"./none.sh"}, {"no-such-command-anywhere"}} {
		c.Argv = argv
		if _, err := Exec(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "cannot run the command: ") {
			t.Errorf("%q: the error is %v", argv, err)
		}
	}
}

// alive reports whether a process is there and no zombie.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// wantGone waits for the process whose id stands in a file to be gone.
func wantGone(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc to look for processes in")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testbed.Patience); alive(t, pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestTimeoutEndsTheGroup(t *testing.T) {
	t.Parallel()
	c := sh(t, "trap '' TERM HUP; sleep 600 & echo $! > child; echo started; wait")
	c.Timeout = 500 * time.Millisecond
	start := time.Now()
	_, err := Exec(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "it ran over 500ms") {
		t.Errorf("the error is %v", err)
	}
	if d := time.Since(start); d > testbed.Patience {
		t.Errorf("it took %v", d)
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
}

func TestCancelEndsTheGroup(t *testing.T) {
	t.Parallel()
	c := sh(t, "sleep 600 & echo $! > child.tmp; mv child.tmp child; wait")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(c.Dir, "child")); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if _, err := Exec(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
}

// TestLeftoversAreEnded has a command that ends at once and leaves a process
// that holds its output open.
func TestLeftoversAreEnded(t *testing.T) {
	t.Parallel()
	c := sh(t, "sleep 600 & echo $! > child; echo done")
	start := time.Now()
	out, err := Exec(t.Context(), c)
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("got %q, %v", out.Stdout, err)
	}
	if d := time.Since(start); d > testbed.Patience {
		t.Errorf("it took %v", d)
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
}

func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	c := sh(t, "echo $$ > child; exec yes")
	start := time.Now()
	_, err := Exec(t.Context(), c)
	if !errors.Is(err, tooMuch(maxOutput)) {
		t.Errorf("the error is %v", err)
	}
	if d := time.Since(start); d > testbed.Patience {
		t.Errorf("it took %v", d)
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
	if out, err := Exec(t.Context(), sh(t, "head -c 1048576 /dev/zero")); err != nil || len(out.Stdout) != maxOutput {
		t.Errorf("a MiB: %d bytes, %v", len(out.Stdout), err)
	}
	if _, err := Exec(t.Context(), sh(t, "head -c 1048577 /dev/zero")); !errors.Is(err, tooMuch(maxOutput)) {
		t.Errorf("a MiB and a byte: %v", err)
	}
}

// TestAPartIsEnough: what was printed before a run printed too much, or took too long.
func TestAPartIsEnough(t *testing.T) {
	t.Parallel()
	c := sh(t, "echo $$ > child; exec yes")
	c.Part, c.Most = true, 1000
	out, err := Exec(t.Context(), c)
	if err != nil || len(out.Stdout) != 1000 || !errors.Is(out.Cut, tooMuch(1000)) {
		t.Errorf("%d bytes, cut %v, %v", len(out.Stdout), out.Cut, err)
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
	c = sh(t, "echo $$ > child; echo first; exec sleep 600")
	c.Part, c.Timeout = true, 300*time.Millisecond
	for {
		if out, err = Exec(t.Context(), c); err != nil || out.Cut == nil {
			t.Errorf("%q, cut %v, %v", out.Stdout, out.Cut, err)
		}
		if string(out.Stdout) == "first\n" {
			break
		}
		if c.Timeout *= 2; c.Timeout > testbed.Patience { // less may be too short on a busy machine
			t.Fatalf("%q is its part", out.Stdout)
		}
	}
	wantGone(t, filepath.Join(c.Dir, "child"))
	c = sh(t, "echo whole")
	c.Part = true
	if out, err = Exec(t.Context(), c); err != nil || out.Cut != nil || string(out.Stdout) != "whole\n" {
		t.Errorf("%q, cut %v, %v", out.Stdout, out.Cut, err)
	}
}

// TestRunReal polls a real command.
func TestRunReal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	var got []string
	Run(ctx, Trigger{
		Command: sh(t, "echo x >> n; wc -l < n"), Every: time.Second,
		Emit: func(_ context.Context, p sources.Prompt) error {
			if got = append(got, p.Text); len(got) == 2 {
				cancel()
			}
			return nil
		},
	})
	if strings.Join(got, ",") != "1,2" {
		t.Errorf("fired %q", got)
	}
}

// TestAProgramThatOthersCanWriteIsNotRun: it runs as this user.
func TestAProgramThatOthersCanWriteIsNotRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"mine": 0o755, "everybodys": 0o777} {
		path := filepath.Join(dir, name)
		for _, err := range []error{os.WriteFile(path, []byte("#!/bin/sh\necho ran\n"), 0o700), os.Chmod(path, mode)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, program := range []string{"./" + name, path} {
			out, err := Exec(t.Context(), Command{Argv: []string{program}, Dir: dir})
			if name == "mine" && (err != nil || string(out.Stdout) != "ran\n") || name != "mine" && (err == nil || !strings.Contains(err.Error(), "everybody can write it (mode 0777)")) {
				t.Errorf("%s: %q, %v", program, out.Stdout, err)
			}
		}
	}
}
