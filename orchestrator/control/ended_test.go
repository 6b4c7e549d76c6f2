package control

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"heartbeat/hook/flock"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
)

// calls are all that a client asks for, by method.
var calls = map[string]func(ctx context.Context, c *Client) error{
	"Status": func(ctx context.Context, c *Client) error { _, err := c.Status(ctx); return err },
	"Pause":  func(ctx context.Context, c *Client) error { _, err := c.Pause(ctx, 0, "a"); return err },
	"Resume": func(ctx context.Context, c *Client) error { _, err := c.Resume(ctx, "a"); return err },
	"PauseTrigger": func(ctx context.Context, c *Client) error {
		_, err := c.PauseTrigger(ctx, 0, "a", "cron-1")
		return err
	},
	"ResumeTrigger": func(ctx context.Context, c *Client) error { _, err := c.ResumeTrigger(ctx, "a", "cron-1"); return err },
	"Restart":       func(ctx context.Context, c *Client) error { _, err := c.Restart(ctx, false, "a"); return err },
	"Cancel":        func(ctx context.Context, c *Client) error { _, err := c.Cancel(ctx, "", false, "a"); return err },
	"Trigger":       func(ctx context.Context, c *Client) error { _, err := c.Trigger(ctx, "a", ""); return err },
	"Stop":          func(ctx context.Context, c *Client) error { _, err := c.Stop(ctx, false); return err },
	"Answer":        func(ctx context.Context, c *Client) error { _, err := c.Answer(ctx, "x", true, "", ""); return err },
	"Tokens": func(ctx context.Context, c *Client) error {
		_, err := c.Tokens(ctx, access.Order{}, "")
		return err
	},
	"Await": func(ctx context.Context, c *Client) error {
		_, err := c.Await(ctx, awaited.Order{})
		return err
	},
	"Withdraw": func(ctx context.Context, c *Client) error { return c.Withdraw(ctx, consent.Withdrawal{}) },
	"Answered": func(ctx context.Context, c *Client) error { return c.Answered(ctx, "a", "x") },
	"Later":    func(ctx context.Context, c *Client) error { return c.Later(ctx) },
	"Reload":   func(ctx context.Context, c *Client) error { _, err := c.Reload(ctx); return err },
}

// TestASchedulerThatEndsBeforeItAnswersIsSaidToHave, for every call: whoever asked got a
// bare EOF, and did not know whether it was done.
func TestASchedulerThatEndsBeforeItAnswersIsSaidToHave(t *testing.T) {
	t.Parallel()
	for method := range reflect.TypeFor[*Client]().Methods() {
		asks := method.Type.NumOut() > 0 && method.Type.Out(method.Type.NumOut()-1) == reflect.TypeFor[error]()
		if asks && calls[method.Name] == nil {
			t.Errorf("%s is not tried", method.Name)
		}
	}
	for name, answer := range map[string]string{
		"nothing": "", "half a head": "HTTP/1.1 200 OK\r\n", "half a body": "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"pid\":",
		"half of one of unknown length": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"pid\":\r\n",
	} {
		dir := folder(t)
		endsIn(t, dir, answer)
		for method, call := range calls {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				err := call(t.Context(), NewClient(dir))
				ended, is := errors.AsType[*EndedError](err)
				if !is || ended.PID != os.Getpid() || !strings.Contains(err.Error(), "(process "+strconv.Itoa(os.Getpid())+") ended before it answered") {
					t.Fatalf("%T: %v", err, err)
				}
				if ended.Look == "" || !strings.Contains(ended.Hint(), ended.Look) || (method != "Status") != strings.Contains(ended.Hint(), "whether it was done is unknown") {
					t.Errorf("hint %q", ended.Hint())
				}
			})
		}
	}
}

// TestASchedulerOfAnotherVersionIsSaidToBe, and how to end it: its process is known, and
// a version that does not know the request cannot be asked to stop.
func TestASchedulerOfAnotherVersionIsSaidToBe(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"an unknown request": "HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\n\r\n404 page not found\n",
		"another form":       "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\"ok\"",
	} {
		dir := folder(t)
		endsIn(t, dir, answer)
		for _, method := range []string{"Status", "Stop", "Answer", "Reload"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				err := calls[method](t.Context(), NewClient(dir))
				other, is := errors.AsType[*OtherError](err)
				if !is || !strings.Contains(err.Error(), "of another version") {
					t.Fatalf("%T: %v", err, err)
				}
				if !strings.Contains(other.Hint(), "kill "+strconv.Itoa(os.Getpid())+",") {
					t.Errorf("hint %q", other.Hint())
				}
			})
		}
	}
}

// endsIn is a scheduler that dies once it has sent the beginning of its answer.
func endsIn(t *testing.T, dir, answer string) {
	t.Helper()
	l, err := net.Listen("unix", socketPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil && !strings.HasSuffix(req.URL.Path, "/alive") {
					_, _ = conn.Write([]byte(answer))
				}
			}()
		}
	}()
}

// TestTheAnswerToAStopIsWrittenBeforeItsSchedulerEnds: a scheduler without sessions ended
// while it still wrote the answer, and stop said that it had failed.
func TestTheAnswerToAStopIsWrittenBeforeItsSchedulerEnds(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	f := &endingFleet{end: cancel, gone: func() bool {
		_, err := os.Lstat(socketPath(dir))
		return errors.Is(err, os.ErrNotExist)
	}}
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, dir, status.Run{PID: 1}, f, slog.New(slog.DiscardHandler)) }()
	c := await(t, dir, 1)
	stopped := make(chan error, 1)
	go func() {
		_, err := c.Stop(t.Context(), false)
		stopped <- err
	}()
	if err := <-served; err != nil || !f.answered.Load() {
		t.Errorf("it has ended, %v, and the answer is ready: %t", err, f.answered.Load())
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// endingFleet ends at once when it is asked to stop, and has the answer ready once nobody
// can connect any more.
type endingFleet struct {
	fleet
	end      func()
	gone     func() bool
	answered atomic.Bool
}

func (f *endingFleet) Stop(bool) {
	f.end()
	testbed.Await(testbed.Patience, f.gone)
	f.answered.Store(true)
}

// TestASchedulerThatCutsOffWhoAsksIsNotSaidToHaveEnded: of 200 commands at once one was told so.
func TestASchedulerThatCutsOffWhoAsksIsNotSaidToHaveEnded(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	unlock, err := flock.TryLock(lockPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	endsIn(t, dir, "")
	if _, err := NewClient(dir).Pause(t.Context(), 0, "a"); err == nil || strings.Contains(err.Error(), "ended") || !strings.Contains(err.Error(), "too many ask it at once") {
		t.Errorf("%v", err)
	}
}
