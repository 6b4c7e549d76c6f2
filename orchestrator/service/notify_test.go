package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/status"
)

// fleet is a scheduler that says what it is told to.
type fleet struct{ wedged atomic.Bool }

func (f *fleet) Alive(ctx context.Context) error {
	if !f.wedged.Load() {
		return nil
	}
	<-ctx.Done()
	return errors.New("the scheduler is stuck")
}

func (f *fleet) Vitals() orchestrator.Vitals {
	return orchestrator.Vitals{Ready: true, Slots: 4, Sessions: 2, Agents: map[status.State]int{
		status.Idle: 5, status.Running: 2, status.Held: 1,
	}}
}

// socket is a service manager's.
func socket(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

// hear returns what comes within d, or "".
func hear(t *testing.T, conn *net.UnixConn, d time.Duration) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	var b [4096]byte
	n, err := conn.Read(b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// TestAWedgedSchedulerDoesNotPetTheWatchdog, which is the whole use of one.
func TestAWedgedSchedulerDoesNotPetTheWatchdog(t *testing.T) {
	conn := socket(t)
	t.Setenv("WATCHDOG_USEC", "200000") // signs of life come every 100 ms
	t.Setenv("WATCHDOG_PID", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	f := &fleet{}
	go func() {
		defer close(done)
		Manager{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}.Follow(ctx, f)
	}()
	if got := hear(t, conn, testbed.Patience); got != "WATCHDOG=1" {
		t.Fatalf("first: %q", got)
	}
	if got, want := hear(t, conn, testbed.Patience), "STATUS=2 of 4 session slots taken; 8 agents: 2 running, 1 held"; got != want {
		t.Fatalf("then: %q, want %q", got, want)
	}
	for range 3 {
		if got := hear(t, conn, testbed.Patience); got != "WATCHDOG=1" {
			t.Fatalf("while it lives: %q", got)
		}
	}
	f.wedged.Store(true)
	last := "WATCHDOG=1"
	for range 20 { // some may have been on their way
		if last = hear(t, conn, 500*time.Millisecond); last == "" {
			break
		}
	}
	if last != "" {
		t.Errorf("a wedged scheduler: %q", last)
	}
	f.wedged.Store(false)
	if got := hear(t, conn, testbed.Patience); got != "WATCHDOG=1" {
		t.Errorf("after it went on: %q", got)
	}
	cancel()
	<-done
}

func TestReloadingIsOneDatagram(t *testing.T) {
	conn := socket(t)
	m := Manager{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m.Reloading()
	got := hear(t, conn, testbed.Patience)
	if !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q", got)
	}
	m.Ready()
	if got := hear(t, conn, testbed.Patience); got != "READY=1" {
		t.Errorf("%q", got)
	}
	m.Stopping()
	if got := hear(t, conn, testbed.Patience); got != "STOPPING=1" {
		t.Errorf("%q", got)
	}
}

func TestNobodyToTell(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	m := Manager{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m.Ready()
	m.Follow(t.Context(), &fleet{}) // returns
}
