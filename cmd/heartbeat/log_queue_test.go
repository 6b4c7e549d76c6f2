package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
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
