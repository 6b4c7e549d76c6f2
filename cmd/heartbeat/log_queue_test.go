package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun"
)

// fullPipe is a pipe that nobody reads and that has no room.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Write(make([]byte, 1<<16)); err != nil {
			break
		}
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	return r, w
}

func TestALogThatNobodyReadsIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	r, w := fullPipe(t)
	var flushes []func()
	for _, format := range []string{"text", "json"} {
		log, _, flush := newRunLog(w, slog.LevelInfo, format)
		for range 100 {
			log.Info("long", "text", strings.Repeat("x", logQueueLimit/50))
		}
		start := time.Now()
		flush()
		if took := time.Since(start); took < logQueueEnd/2 || took > testbed.Patience {
			t.Errorf("%s: the end waited %v", format, took)
		}
		flushes = append(flushes, flush)
	}
	heard := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r)
		heard <- all
	}()
	for _, flush := range flushes {
		flush()
	}
	_ = w.Close()
	all := <-heard
	for _, want := range []string{"lines of this log were dropped: nobody read it", `"lines":`} {
		if !bytes.Contains(all, []byte(want)) {
			t.Errorf("%q is not in the %d bytes of the log", want, len(all))
		}
	}
}

// TestALogThatNobodyReadsFreezesNoFleet: the scheduler logged with its lock
// held, so that a pipe that was full, or Ctrl-S, stopped all agents and the end.
func TestALogThatNobodyReadsFreezesNoFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	_, full := fullPipe(t)
	cmd := w.command("run", "--log-level", "debug")
	cmd.Stdout, cmd.Stderr = nil, full
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	until(t, "the scheduler answers", func() bool { return w.fleet().Scheduler.PID == cmd.Process.Pid })
	w.ok("send", "triage", "hello")
	until(t, "the entry is done", func() bool { return w.agent("triage").Acknowledged == 1 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("it does not end")
	}
}

// TestOutputThatNobodyReadsKeepsNoRun: a run whose table at the end, or whose lines of JSON,
// nobody took stayed as a process for ever, and stop said of it that it had ended.
func TestOutputThatNobodyReadsKeepsNoRun(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"text": {"run"}, "json": {"run", "-o", "json", "--heartbeat-ms", "100"}} {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stderr too: %v", name, both), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.put("heartbeat.yaml", simulated)
				w.put("agents/triage/README", "")
				_, full := fullPipe(t)
				cmd := w.command(args...)
				if cmd.Stdout, cmd.Stderr = full, nil; both {
					cmd.Stderr = full
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				until(t, "the scheduler answers", func() bool {
					return w.fleet().Scheduler.PID == cmd.Process.Pid
				})
				if out := w.ok("stop"); out != fmt.Sprintf("process %d has ended\n", cmd.Process.Pid) {
					t.Errorf("stop said %q", out)
				}
				if _, err := ptyrun.StartTimeOf(cmd.Process.Pid); !errors.Is(err, ptyrun.ErrGone) {
					t.Errorf("the process lives: %v", err)
				}
				<-ended
				if code := cmd.ProcessState.ExitCode(); code != 0 {
					t.Errorf("it ended with %d", code)
				}
			})
		}
	}
}

// takes is a writer that takes a write after a time or, if that is 0, once it is closed.
type takes struct {
	after  time.Duration
	closed chan struct{}
	got    atomic.Int64
}

func (w *takes) Write(p []byte) (int, error) {
	if w.after == 0 {
		<-w.closed
	}
	time.Sleep(w.after)
	w.got.Add(int64(len(p)))
	return len(p), nil
}

// TestASlowReaderGetsAll: only who takes nothing at all is left, and the result of a run that
// has finished by itself waits for its reader as that of any command does.
func TestASlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	long := ran{Summary: &status.Summary{Agents: []status.AgentSummary{{AgentState: status.AgentState{Agent: strings.Repeat("x", 10*readChunk)}}}}}
	for name, after := range map[string]time.Duration{"slow": readerPatience - time.Second, "stopped": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &takes{after: after, closed: make(chan struct{})}
				defer close(w.closed)
				to := &outlet{w: w}
				o := newOutput(stdio{out: os.NewFile(1<<20, "none"), err: os.NewFile(1<<20, "none")}, true, time.Now())
				o.w, o.err = to, to
				begin := time.Now()
				code := o.finishUnheld(long, nil, to)
				if took := time.Since(begin); code != 0 || after > 0 && w.got.Load() < 10*readChunk || after == 0 && took > 2*readerPatience {
					t.Errorf("exit status %d after %v, %d bytes", code, took, w.got.Load())
				}
			})
		})
	}
	for _, finished := range []bool{true, false} {
		if r := (ran{Summary: &status.Summary{Finished: finished}}); r.hasFinished() != finished || (ran{}).hasFinished() {
			t.Errorf("finished %v: %v", finished, r.hasFinished())
		}
	}
}
