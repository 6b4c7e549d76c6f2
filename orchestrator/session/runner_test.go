package session

import (
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestOrdersDoNotWaitForAStuckShim: who gave an order to a shim that had stopped
// reading waited for ever as soon as the pipe was full, with all other sessions.
func TestOrdersDoNotWaitForAStuckShim(t *testing.T) {
	t.Parallel()
	stuck := exec.Command("sleep", "60")
	stdin, err := stuck.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stuck.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stuck.Process.Kill(); _ = stuck.Wait() }()
	// It takes what it has room for at once.
	if pipe, ok := stdin.(interface{ SetWriteDeadline(t time.Time) error }); !ok {
		t.Fatal("the pipe to a shim has no deadline")
	} else if err := pipe.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for full := make([]byte, 4096); err == nil; {
		_, err = stdin.Write(full)
	}
	live := &shimSession{stdin: stdin, log: slog.New(slog.DiscardHandler)}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 3 {
			live.Order(Order{Yield: true})
		}
	}()
	select {
	case <-told:
	case <-time.After(testbed.Patience):
		t.Error("an order waits for a stuck shim")
	}
}
