package flock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("FLOCK_TEST_HOLD"); path != "" {
		hold(path)
		return
	}
	os.Exit(m.Run())
}

// hold is a process that takes a lock, says so, and waits for its end.
func hold(path string) {
	if _, err := TryLock(path); err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// holder starts a process that holds the lock on path.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FLOCK_TEST_HOLD="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	buf := make([]byte, 5)
	if _, err := out.Read(buf); err != nil || string(buf) != "held\n" {
		t.Fatalf("the holder said %q, %v", buf, err)
	}
	return cmd
}

func TestLockExcludesAndIsReleased(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"file":      filepath.Join(t.TempDir(), "lock"),
		"directory": t.TempDir(),
	} {
		unlock, err := TryLock(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !Held(path) {
			t.Errorf("%s: not reported as held", name)
		}
		if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: second lock: %v, want ErrHeld", name, err)
		}
		if err := unlock(); err != nil {
			t.Errorf("%s: release: %v", name, err)
		}
		if err := unlock(); err != nil {
			t.Errorf("%s: second release: %v", name, err)
		}
		if Held(path) {
			t.Errorf("%s: held after its release", name)
		}
		again, err := TryLock(path)
		if err != nil {
			t.Errorf("%s: after its release: %v", name, err)
		} else if err := again(); err != nil {
			t.Error(err)
		}
	}
}

func TestLockWaitsAndGivesUpWithTheCause(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Lock(ctx, path); !errors.Is(err, why) || !errors.Is(err, ErrHeld) {
		t.Errorf("given up with %v", err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := Lock(t.Context(), path)
		if err == nil {
			err = again()
		}
		got <- err
	}()
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	cmd := holder(t, path)
	if !Held(path) {
		t.Fatal("another process's lock is not seen")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	unlock, err := Lock(ctx, path)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// A lock whose release nobody keeps would go with its file, when the garbage
// collector closes it.
func TestLockSurvivesGarbageCollection(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	func() {
		if _, err := TryLock(path); err != nil {
			t.Fatal(err)
		}
	}()
	for range 5 {
		runtime.GC()
	}
	if !Held(path) {
		t.Error("the lock went away")
	}
}

func TestChildrenDoNotInheritTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "30")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if Held(path) {
		t.Error("the child holds it")
	}
}

func TestWhatIsNoFileOrDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "neither a file nor a directory", link: "symbolic link"} {
		_, err := TryLock(path)
		if err == nil || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the link's target was made")
	}
}

func TestAProbeDoesNotMakeATryFail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var probe sync.WaitGroup
	probe.Go(func() {
		for !done.Load() {
			Held(path)
			time.Sleep(time.Millisecond) // a probe is a look now and then
		}
	})
	for range 100 {
		unlock, err := TryLock(path)
		if err != nil {
			t.Errorf("beside a probe: %v", err)
			break
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	probe.Wait()
}

// TestAProbeThatIsInterruptedDoesNotMakeATryFail: on a busy machine status looked at a
// directory for longer than run tried to lock it, and run said that another one runs there.
func TestAProbeThatIsInterruptedDoesNotMakeATryFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := flock(f, syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = f.Close() }) // far longer than a look takes
	unlock, err := TryLockFolder(dir)
	if err != nil {
		t.Fatalf("beside a probe: %v", err)
	}
	if _, err := TryLockFolder(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("beside a lock: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestAReplacedLockFileIsNotLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if at(path).is(old) {
		t.Error("the removed file counts as the one that has the name")
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
