package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Runner starts sessions. The one that `run` uses starts a shim process for each;
// tests use one that needs no process.
type Runner interface {
	Start(ctx context.Context, spec Spec) (Live, error)
}

// Session is a live
type Live interface {
	// Reports delivers what the session does. It is closed after the last report,
	// which has the outcome; if no report has one, the shim died.
	Reports() <-chan Report
	// Order sends the session an order. It does not wait for a session that takes
	// none, and after the session's end it does nothing.
	Order(o Order)
}

// Processes is the Runner of real sessions: `SELF launch --shim`.
type Processes struct {
	Self string // the running binary
	Log  *slog.Logger
}

// Start starts a shim, of this very program also after an upgrade. Its stdin
// is the life pipe: when this process dies, however it dies, the shim reads its
// end and ends the
func (s Processes) Start(_ context.Context, spec Spec) (Live, error) {
	cmd := exec.Command(s.Self, "launch", "--shim")
	if current := Self(); current == ownImage {
		cmd.Path = current // the file is another one now, or none
	}
	// A process session of its own: Ctrl-C at our terminal is for us alone to
	// handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Env = os.Environ()
	cmd.Stderr = &lineLog{log: s.Log.With("agent", spec.Agent)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a session's shim: %w", err)
	}
	live := &shimSession{stdin: stdin, reports: make(chan Report, 16), log: s.Log}
	if err := json.NewEncoder(stdin).Encode(spec); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot tell a session's shim what to run: %w", err), stdin.Close(), cmd.Wait())
	}
	go live.follow(cmd, stdout)
	return live, nil
}

type shimSession struct {
	mu      sync.Mutex
	stdin   io.WriteCloser
	orders  [][]byte // that have not been written yet, as lines
	writing bool
	reports chan Report
	log     *slog.Logger
}

func (l *shimSession) Reports() <-chan Report { return l.reports }

// mostOrders bounds the orders that a shim has not taken. More are dropped: it has
// been stuck for hours.
const mostOrders = 1000

// Order does not write itself: who gives it has other sessions, and a pipe whose
// reader stands still takes nothing.
func (l *shimSession) Order(o Order) {
	line, err := json.Marshal(o)
	if err != nil {
		l.log.Error("cannot tell a session something", "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.orders); n > 0 && o == (Order{Queued: true}) && bytes.Equal(l.orders[n-1], append(line, '\n')) {
		return // it says so already
	}
	if len(l.orders) == mostOrders {
		l.log.Warn("a session takes no orders: one was dropped")
		return
	}
	l.orders = append(l.orders, append(line, '\n'))
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

// write writes the orders, until there are none. After the session's end each fails
// at once.
func (l *shimSession) write() {
	for {
		l.mu.Lock()
		if len(l.orders) == 0 {
			l.writing = false
			l.mu.Unlock()
			return
		}
		line := l.orders[0]
		l.orders = l.orders[1:]
		l.mu.Unlock()
		if _, err := l.stdin.Write(line); err != nil {
			l.log.Debug("a session that is gone was told something", "err", err)
		}
	}
}

func (l *shimSession) follow(cmd *exec.Cmd, stdout io.Reader) {
	defer close(l.reports)
	lines := json.NewDecoder(bufio.NewReader(stdout))
	for {
		var r Report
		if err := lines.Decode(&r); err != nil {
			break
		}
		l.reports <- r
	}
	if err := cmd.Wait(); err != nil {
		l.log.Warn("a session's shim failed", "err", err)
	}
	_ = l.stdin.Close()
}

// lineLog logs what a shim writes to stderr.
type lineLog struct{ log *slog.Logger }

func (l *lineLog) Write(p []byte) (int, error) {
	l.log.Warn("shim", "stderr", string(p))
	return len(p), nil
}
