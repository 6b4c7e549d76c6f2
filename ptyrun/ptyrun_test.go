package ptyrun

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

var (
	cycles = flag.Int("ptyrun.cycles", 100, "how often TestCycles starts and ends a child")
	flood  = flag.Int("ptyrun.flood", 64, "megabytes that a child writes in TestFlood")
)

func start(t *testing.T, cfg Config) *Child {
	t.Helper()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.End(ctx)
	})
	return c
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// run starts a script, waits for its exit and ends it.
func run(t *testing.T, cfg Config) (string, Exit) {
	t.Helper()
	out := &testbed.Output{}
	cfg.Output = out
	c := start(t, cfg)
	select {
	case <-c.Done():
	case <-time.After(testbed.Patience):
		t.Fatal("the child does not exit")
	}
	exit := c.End(t.Context())
	return out.String(), exit
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		code   int
		signal string
	}{
		"success": {"exit 0", 0, ""},
		"failure": {"exit 3", 3, ""},
		"highest": {"exit 255", 255, ""},
		"killed":  {"kill -9 $$", 137, "SIGKILL"},
		"aborted": {"kill -6 $$", 134, "SIGABRT"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, exit := run(t, Config{Argv: sh(tt.script)})
			if exit.Code != tt.code || exit.Signal != tt.signal {
				t.Errorf("exit is %+v", exit)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	t.Run("default size", func(t *testing.T) {
		t.Parallel()
		out, _ := run(t, Config{Argv: sh("stty size; tty; ps -o sid= -p $$; echo $$")})
		f := strings.Fields(out)
		if len(f) != 5 || f[0] != "50" || f[1] != "200" || !strings.HasPrefix(f[2], "/dev/") || f[3] != f[4] {
			t.Errorf("the child sees %q", out)
		}
	})
	t.Run("resize", func(t *testing.T) {
		t.Parallel()
		out := &testbed.Output{}
		c := start(t, Config{Argv: sh("trap 'stty size; exit' WINCH; echo ready; while :; do sleep .05; done"), Rows: 10, Cols: 20, Output: out})
		within(t, "ready", func() bool { return strings.Contains(out.String(), "ready") })
		if err := c.Resize(33, 44); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		c.End(t.Context())
		if !strings.Contains(out.String(), "33 44") {
			t.Errorf("the child sees %q", out.String())
		}
	})
	t.Run("typing", func(t *testing.T) {
		t.Parallel()
		out := &testbed.Output{}
		c := start(t, Config{Argv: sh("read -r line; echo got:$line"), Output: out})
		if _, err := c.Write([]byte("hello\r")); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		c.End(t.Context())
		if !strings.Contains(out.String(), "got:hello") {
			t.Errorf("the child shows %q", out.String())
		}
		if last, n := c.Activity(); n < int64(len("got:hello")) || time.Since(last) > time.Minute {
			t.Errorf("activity is %v, %d bytes", last, n)
		}
		if _, err := c.Write([]byte("late")); err == nil {
			t.Error("writing after the end succeeds")
		}
		if err := c.Resize(1, 1); err == nil {
			t.Error("resizing after the end succeeds")
		}
	})
	t.Run("closed and opened again", func(t *testing.T) {
		t.Parallel()
		out, _ := run(t, Config{Argv: sh("exec <&- >&- 2>&-; sleep .2; echo back >/dev/tty")})
		if !strings.Contains(out, "back") {
			t.Errorf("the child shows %q", out)
		}
	})
}

// The last output of a child that writes and exits is not lost.
func TestLastOutput(t *testing.T) {
	t.Parallel()
	for range 20 {
		out, exit := run(t, Config{Argv: sh("head -c 20000 /dev/zero | tr '\\0' x; printf END")})
		if len(out) != 20003 || !strings.HasSuffix(out, "END") {
			t.Fatalf("%d bytes, exit %+v", len(out), exit)
		}
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx  context.Context
		cfg  Config
		want error
	}{
		"no command":           {t.Context(), Config{}, ErrCommand},
		"missing":              {t.Context(), Config{Argv: []string{"no-such-command"}}, ErrCommand},
		"missing path":         {t.Context(), Config{Argv: []string{"/no/such/command"}}, ErrCommand},
		"not executable":       {t.Context(), Config{Argv: []string{plain}}, ErrCommand},
		"not in the child's":   {t.Context(), Config{Argv: []string{"sh"}, Env: []string{"PATH=/nowhere"}}, exec.ErrNotFound},
		"not executable there": {t.Context(), Config{Argv: []string{"plain"}, Env: []string{"PATH=" + filepath.Dir(plain)}}, os.ErrPermission},
		"missing directory":    {t.Context(), Config{Argv: sh("true"), Dir: "/no/such/dir"}, ErrDir},
		"not a directory":      {t.Context(), Config{Argv: sh("true"), Dir: plain}, ErrDir},
		"context is done":      {done, Config{Argv: sh("true")}, context.Canceled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Start(tt.ctx, tt.cfg); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	t.Run("heeds SIGTERM", func(t *testing.T) {
		t.Parallel()
		out := &testbed.Output{}
		c := start(t, Config{Argv: sh("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep .05; done"), Output: out})
		within(t, "ready", func() bool { return strings.Contains(out.String(), "ready") })
		exit := c.End(t.Context())
		if exit.Code != 5 || !strings.Contains(out.String(), "bye") {
			t.Errorf("exit %+v after %q", exit, out.String())
		}
	})
	t.Run("ignores SIGTERM", func(t *testing.T) {
		t.Parallel()
		out := &testbed.Output{}
		c := start(t, Config{Argv: sh("trap '' TERM; echo ready; while :; do sleep .05; done"), Output: out, Grace: 200 * time.Millisecond})
		within(t, "ready", func() bool { return strings.Contains(out.String(), "ready") })
		before := time.Now()
		exit := c.End(t.Context())
		if exit.Signal != "SIGKILL" || exit.Code != 137 {
			t.Errorf("exit is %+v", exit)
		}
		if took := time.Since(before); took < 200*time.Millisecond {
			t.Errorf("no grace: ended after %v", took)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		c := start(t, Config{Argv: []string{"sleep", "100"}})
		if err := syscall.Kill(c.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if exit := c.End(t.Context()); exit.Signal != "SIGTERM" {
			t.Errorf("exit is %+v", exit)
		}
	})
	t.Run("without grace", func(t *testing.T) {
		t.Parallel()
		out := &testbed.Output{}
		c := start(t, Config{Argv: sh("trap '' TERM; echo ready; while :; do sleep .05; done"), Output: out, Grace: time.Hour})
		within(t, "ready", func() bool { return strings.Contains(out.String(), "ready") })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if exit := c.End(ctx); exit.Signal != "SIGKILL" {
			t.Errorf("exit is %+v", exit)
		}
	})
	t.Run("many callers", func(t *testing.T) {
		t.Parallel()
		c := start(t, Config{Argv: sh("sleep 100 & sleep 100")})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if exit := c.End(t.Context()); exit.Code != 143 {
					t.Errorf("exit is %+v", exit)
				}
			})
		}
		all.Wait()
		if exit := c.End(t.Context()); exit.Code != 143 {
			t.Errorf("later: %+v", exit)
		}
	})
	t.Run("fork while dying", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		script := `n() { while :; do setsid sh -c 'echo $$ >>"` + dir + `/p"; sleep 100' & sleep .01; done; }; trap '' TERM HUP; n & n`
		c := start(t, Config{Argv: []string{"bash", "-c", script}, Grace: 50 * time.Millisecond})
		within(t, "many forks", func() bool {
			data, _ := os.ReadFile(dir + "/p")
			return bytes.Count(data, []byte("\n")) > 20
		})
		exit := c.End(t.Context())
		if len(exit.Left) > 0 || len(exit.Swept) < 20 {
			t.Errorf("swept %d, left %v", len(exit.Swept), exit.Left)
		}
		procs, err := c.find()
		if err != nil || len(procs) > 0 {
			t.Errorf("survivors %v, %v", procs, err)
		}
	})
}

// failing is an Output on a full disk: it fails after some bytes.
type failing struct{ room int }

func (f *failing) Write(p []byte) (int, error) {
	n := min(f.room, len(p))
	if f.room -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A child that floods its terminal is never stopped by where its output goes.
func TestFlood(t *testing.T) {
	t.Parallel()
	size := int64(*flood) << 20
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	outputs := map[string]io.Writer{
		"failing": &failing{room: 1 << 20},
		"stuck":   writerFunc(func(p []byte) (int, error) { <-stuck; return len(p), nil }),
	}
	for name, output := range outputs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Raw: the line discipline would add a CR to each LF.
			c := start(t, Config{Argv: sh(fmt.Sprintf("stty raw; head -c %d /dev/zero", size)), Output: output, stuck: 200 * time.Millisecond})
			select {
			case <-c.Done():
			case <-time.After(testbed.Patience):
				t.Fatal("the child stands still")
			}
			exit := c.End(t.Context())
			_, seen := c.Activity()
			if exit.Code != 0 || seen != size {
				t.Errorf("exit %+v, %d bytes of %d", exit, seen, size)
			}
			if exit.Dropped < size-2*maxBacklog || exit.Dropped > size {
				t.Errorf("%d bytes dropped", exit.Dropped)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A slow Output gets everything.
func TestSlowOutput(t *testing.T) {
	t.Parallel()
	var got int64
	slow := writerFunc(func(p []byte) (int, error) {
		time.Sleep(2 * time.Millisecond)
		got += int64(len(p))
		return len(p), nil
	})
	const size = 4 << 20
	c := start(t, Config{Argv: sh(fmt.Sprintf("stty raw; head -c %d /dev/zero", size)), Output: slow})
	<-c.Done()
	if exit := c.End(t.Context()); exit.Dropped != 0 || got != size {
		t.Errorf("%d bytes dropped, %d arrived", exit.Dropped, got)
	}
}

// asleep is a forwarder whose writer gets something only once run is called.
func asleep(w io.Writer, stuck time.Duration) *forwarder {
	f := newForwarder(nil, stuck)
	f.w, f.failed, f.done = w, false, make(chan struct{})
	return f
}

// TestABurstThatTheWriterHasNotSeenYetIsKept: a writer that has had nothing to write for
// long, or at all, is not stuck. A busy machine may wake it only when the backlog is full,
// and output was dropped at once.
func TestABurstThatTheWriterHasNotSeenYetIsKept(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]time.Time{"at the start": {}, "after an hour": time.Now().Add(-time.Hour)} {
		var got bytes.Buffer
		f := asleep(&got, testbed.Patience)
		f.since = last
		f.add(make([]byte, maxBacklog))
		if wait, taken := f.try([]byte("more")); taken || wait <= 0 {
			t.Errorf("%s: taken %v, wait %v", name, taken, wait)
		}
		go f.run()
		f.add([]byte("more"))
		f.close()
		if <-f.done; f.lost() != 0 || got.Len() != maxBacklog+len("more") {
			t.Errorf("%s: %d bytes dropped, %d arrived", name, f.lost(), got.Len())
		}
	}
}

// Orphans are reaped while their session runs, and no child of os/exec loses
// its status to that.
func TestReaperStealsNothing(t *testing.T) {
	t.Parallel()
	out := &testbed.Output{}
	c := start(t, Config{Argv: sh(`for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c 'sleep .05' &); done; echo ready; sleep 100`), Output: out})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			cmd := exec.Command("sh", "-c", fmt.Sprintf("exit %d", i))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: i%2 == 0}
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			// Let it become a zombie: this is what could be stolen.
			within(t, "exit", func() bool { _, err := StartTimeOf(cmd.Process.Pid); return errors.Is(err, ErrGone) })
			reapOrphans()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != i {
				t.Errorf("exit code %d, want %d", code, i)
			}
		})
	}
	all.Wait()
	within(t, "no zombie of the session is left", func() bool {
		procs, err := snapshot()
		return err == nil && strings.Contains(out.String(), "ready") &&
			!slices.ContainsFunc(procs, func(p process) bool { return p.zombie && p.ppid == os.Getpid() })
	})
	c.End(t.Context())
}

// Starting and ending leaves no descriptor, goroutine or zombie behind. Not
// parallel: it counts.
func TestCycles(t *testing.T) {
	cycle := func() {
		c, err := Start(t.Context(), Config{Argv: []string{"/bin/true"}, Output: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if exit := c.End(t.Context()); exit.Code != 0 || len(exit.Swept) > 0 {
			t.Fatalf("exit is %+v", exit)
		}
	}
	cycle() // the runtime's own goroutines and descriptors
	fds, goroutines := openFiles(t), runtime.NumGoroutine()
	before := time.Now()
	for range *cycles {
		cycle()
	}
	t.Logf("%d cycles, %v each", *cycles, time.Since(before)/time.Duration(*cycles))
	within(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := openFiles(t); n > fds {
		t.Errorf("%d open files, before %d", n, fds)
	}
	procs, err := snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if p.ppid == os.Getpid() && p.zombie {
			t.Errorf("zombie %d (%s)", p.pid, p.command)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestAGapAtTheEndHasItsNote: only the next output that fitted brought the note, so a child
// that ended behind the gap left a stream that seemed whole.
func TestAGapAtTheEndHasItsNote(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	f := asleep(&got, 0) // stuck at once
	f.add(make([]byte, maxBacklog))
	f.add([]byte("lost"))
	f.close()
	f.run()
	if tail := strings.TrimLeft(got.String(), "\x00"); f.lost() != 4 || tail != "\r\n[heartbeat: 4 bytes of output are missing here]\r\n" {
		t.Errorf("%d bytes dropped, the stream ends with %q", f.lost(), tail)
	}
}
