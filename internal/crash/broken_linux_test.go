package crash

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// expectation is expect.json of a broken directory: what must come of it.
type expectation struct {
	Fault string // what is broken, for people
	// Setup are shell commands run in the directory before anything else,
	// for what a checkout cannot hold.
	Setup string
	// Between are shell commands run after the first Stop call.
	Between string
	// Args are more flags of the hook.
	Args []string
	// Prompts are what the Stop calls hand over, in order, until one approves.
	Prompts []string
	// Says must stand in what the calls say on stderr; with nothing handed
	// over and lines queued it may not be empty.
	Says string
	// Recover is what `recover --on-orphan POLICY` says first, when POLICY
	// is not empty; RecoverStatus its exit status.
	Policy, Recover string
	RecoverStatus   int
	// Dead are the dead letters as "REASON RAW LINE".
	Dead []string
	// Left is what stays queued, when a person is needed.
	Left int
}

// TestBrokenDirectories points the release binary at directories that are
// broken, one fault each (testdata/*/expect.json). The calls have no
// session_id: what they hand over is taken.
func TestBrokenDirectories(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("testdata/*/expect.json")
	if err != nil || len(all) < 30 {
		t.Fatalf("%d broken directories, %v", len(all), err)
	}
	for _, path := range all {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			var e expectation
			if err := json.Unmarshal([]byte(read(t, path)), &e); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
				t.Fatal(err)
			}
			testbed.Played(t, testbed.Scenarios, 1)
			e.check(t, dir)
		})
	}
}

func (e expectation) check(t *testing.T, dir string) {
	queue := filepath.Join(dir, "inbox.jsonl")
	shell(t, dir, e.Setup)
	if e.Policy != "" {
		o := stepper.Plain(t, stepper.Program{
			Path: program(t, "heartbeat-stop"), Dir: dir, Args: []string{"recover", "--inbox", queue, "--on-orphan", e.Policy},
		})
		if o.Status != e.RecoverStatus || !strings.Contains(o.Stderr, e.Recover) {
			t.Errorf("recover: status %d, said %q; want %d, %q", o.Status, o.Stderr, e.RecoverStatus, e.Recover)
		}
	}
	prompts, said := e.drain(t, dir, queue)
	if !slices.Equal(prompts, e.Prompts) {
		t.Errorf("handed over %q, want %q\nsaid: %s", prompts, e.Prompts, said)
	}
	if !strings.Contains(said, e.Says) {
		t.Errorf("said %q, want %q in it", said, e.Says)
	}
	e.checkRest(t, queue, said)
}

// drain calls the hook until it approves.
func (e expectation) drain(t *testing.T, dir, queue string) (prompts []string, said string) {
	for i := range 20 {
		o := stepper.Plain(t, stepper.Program{
			Path: program(t, "heartbeat-stop"), Dir: dir, Args: append([]string{"--inbox", queue}, e.Args...),
		})
		said += o.Stderr
		if o.Status != 0 {
			t.Fatalf("status %d, stdout %q, stderr %q: it must fail open", o.Status, o.Stdout, o.Stderr)
		}
		if o.Stdout != "" {
			var block struct{ Decision, Reason string }
			if err := json.Unmarshal([]byte(o.Stdout), &block); err != nil || block.Decision != "block" {
				t.Fatalf("stdout %q", o.Stdout)
			}
			prompts = append(prompts, block.Reason)
		}
		if i == 0 {
			shell(t, dir, e.Between)
		}
		if o.Stdout == "" && (i > 0 || e.Between == "") {
			return prompts, said
		}
	}
	t.Fatalf("endless: %q", prompts)
	return nil, ""
}

// checkRest looks at dead letters and at what is left: where a person is needed words say
// so, otherwise the cursor stands at the end of the inbox.
func (e expectation) checkRest(t *testing.T, queue, said string) {
	t.Helper()
	dir := filepath.Dir(queue)
	var dead []string
	for _, d := range lines[promise.Dead](t, filepath.Join(dir, ".dead-letter.jsonl")) {
		dead = append(dead, string(d.Reason)+" "+d.RawLine)
	}
	if !slices.Equal(dead, e.Dead) {
		t.Errorf("dead letters %q, want %q", dead, e.Dead)
	}
	info, err := os.Stat(queue)
	switch {
	case e.Left > 0 || err == nil && !info.Mode().IsRegular():
		if said == "" {
			t.Error("a person is needed, and nothing is said")
		}
	case err == nil:
		cursor, _ := strconv.ParseInt(strings.TrimSpace(read(t, filepath.Join(dir, ".inbox-offset"))), 10, 64)
		if rest := read(t, queue); strings.TrimSpace(rest[min(max(cursor, 0), int64(len(rest))):]) != "" || cursor > int64(len(rest)) {
			t.Errorf("left in the queue: the cursor is %d of %q, said %q", cursor, rest, said)
		}
	}
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	if script == "" {
		return
	}
	o := stepper.Plain(t, stepper.Program{
		Path: "/bin/sh", Args: []string{"-euc", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	if o.Status != 0 {
		t.Fatalf("%s: status %d, %s", script, o.Status, o.Stderr)
	}
}

// TestAFifoAsInboxDoesNotHang: heartbeat-rs waited for a writer until its hook
// timeout.
func TestAFifoAsInboxDoesNotHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "inbox.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := stepper.Plain(t, stepper.Program{
		Path: program(t, "heartbeat-stop"), Dir: dir, Args: []string{"--inbox", filepath.Join(dir, "inbox.jsonl")},
	})
	if o.Status != 0 || o.Stdout != "" || !strings.Contains(o.Stderr, "not a regular file") {
		t.Errorf("%+v", o)
	}
}

// A link in the agent's folder made heartbeat-rs's hook write elsewhere.
func TestALinkedStateFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		".inbox-offset", ".inbox-offset.tmp", ".in-flight", ".in-flight.tmp", ".responded", ".inbox-meta",
		"outbox.jsonl", ".dead-letter.jsonl", ".hook-lock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir, victim := filepath.Join(parent, "agent"), filepath.Join(parent, "victim")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(victim, filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			write(t, victim, "precious\n")
			write(t, filepath.Join(dir, "inbox.jsonl"), "one\n\"torn\ntwo\n")
			for range 4 {
				_ = stepper.Plain(t, stepper.Program{
					Path: program(t, "heartbeat-stop"), Dir: dir, Args: []string{"--inbox", filepath.Join(dir, "inbox.jsonl")},
				})
			}
			if got := read(t, victim); got != "precious\n" {
				t.Errorf("the victim holds %q", got)
			}
		})
	}
}

// TestAFullDisk writes to a file system without room: nothing may be handed
// over that is not recorded, and it goes on when there is room again.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("no full disk here: cannot mount a tmpfs: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	l := newLab(t, dir, wiredJSON, promise.DeadLetter)
	defer l.unlock()
	l.fill()
	l.launch()
	l.step(0, true)
	testbed.Played(t, testbed.FailingCalls, 1)
	full := time.Now()
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = io.WriteString(ballast, strings.Repeat("x", 512))
	}
	ballast.Close()
	l.step(0, true) // it cannot acknowledge the first
	if c := l.record.Count(); c.Given != 1 || c.Repeats > 0 || !strings.Contains(l.last, "no space") {
		t.Errorf("on the full disk: %+v, %s", c, l.last)
	}
	if err := os.Remove(ballast.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	l.interrupted(full, "a turn ends without an acknowledgement")
	l.wake()
	l.drain()
	l.check("with room again")
}
