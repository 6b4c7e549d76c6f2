package handwired

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/handwired/files"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
)

// built builds heartbeat-stop once, with the crash points.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "heartbeat-stop-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "heartbeat-stop")
	return path, testbed.Build(path, "heartbeat/cmd/heartbeat-stop", "-tags=heartbeat_crash")
})

func TestMain(m *testing.M) {
	os.Exit(testbed.Run(m)) // with its temporary folder goes what was built
}

func program(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// old is a directory as heartbeat-rs's users have it: no session of ours.
type old struct {
	t          testing.TB
	home       string
	inbox      string
	transcript string
	env        []string
}

func newOld(t *testing.T, content string) *old {
	t.Helper()
	dir := t.TempDir()
	o := &old{t: t, home: dir, inbox: filepath.Join(dir, "inbox.jsonl"), env: []string{"PATH=" + os.Getenv("PATH")}}
	if content != "" {
		if err := os.WriteFile(o.inbox, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// sessionLock is the lock that a live session's shim holds.
func (o *old) sessionLock() string { return filepath.Join(o.home, files.SessionLock) }

// result is what a hook call showed.
type result struct {
	status         int // -1: killed by a signal
	stdout, stderr string
	took           time.Duration
}

// command is a call of the built binary.
func (o *old) command(args []string, stdin string) *exec.Cmd {
	cmd := exec.Command(program(o.t), args...)
	cmd.Env, cmd.Dir = o.env, filepath.Dir(o.home)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

func (o *old) run(cmd *exec.Cmd) result {
	o.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		o.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(begin)}
}

// soon has the hooks that follow wait only a moment for what is written late: in most tests
// nothing is.
func (o *old) soon() { o.env = append(o.env, "HEARTBEAT_SOONER=200ms") }

// fields are a payload's fields beside the common ones.
type fields map[string]any

func (o *old) payload(event string, more fields) string {
	p := fields{
		"session_id": "C", "transcript_path": o.transcript, "cwd": "/", "prompt_id": "P1",
		"permission_mode": "dontAsk", "hook_event_name": event,
	}
	maps.Copy(p, more)
	data, err := json.Marshal(p)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(data)
}

func (o *old) append(lines ...string) {
	o.t.Helper()
	f, err := os.OpenFile(o.inbox, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		o.t.Fatal(err)
	}
}

func (o *old) locked(f func(q *files.Held)) {
	o.t.Helper()
	q, err := files.Open(files.Place{Inbox: o.inbox})
	if err != nil {
		o.t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testbed.Patience)
	defer cancel()
	held, err := q.Lock(ctx)
	if err != nil {
		o.t.Fatal(err)
	}
	defer held.Unlock()
	f(held)
}

func (o *old) read(name string) string {
	data, err := os.ReadFile(filepath.Join(o.home, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.t.Fatal(err)
	}
	return string(data)
}

func (o *old) log() string { return o.read("hook.log") }

// files is a picture of the folder, to see that nothing was touched.
func (o *old) files() string {
	o.t.Helper()
	var b strings.Builder
	err := filepath.Walk(o.home, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %s\n", path, info.Mode(), info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return b.String()
}

func (o *old) flight() (f *files.Record) {
	o.t.Helper()
	o.locked(func(q *files.Held) {
		var err error
		if f, err = q.InFlight(); err != nil {
			o.t.Fatal(err)
		}
	})
	return f
}

// queuedAfresh checks that an entry is first in the queue, as if it had never been handed over.
func (o *old) queuedAfresh(prompt string) {
	o.t.Helper()
	o.locked(func(q *files.Held) {
		f, err := q.InFlight()
		if err != nil || f != nil {
			o.t.Fatalf("in flight %+v, %v\n%s", f, err, o.log())
		}
		e, err := q.Next()
		if err == nil {
			f, err = q.Offer(e, files.Offering{Via: queue.ViaStop, Session: "S"})
		}
		if err != nil || f.Attempt != 1 || handover.PromptFor(f.Given()) != prompt {
			o.t.Errorf("%+v, %v: want %q for the first time", f, err, prompt)
		}
	})
}

// replies are the outbox's.
func (o *old) replies() (all []string) {
	o.t.Helper()
	for line := range strings.Lines(o.read("outbox.jsonl")) {
		var d files.Delivery
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			o.t.Fatal(err)
		}
		all = append(all, d.Reply)
	}
	return all
}

// fileOf returns the content of the file that a hand-over names, or fails.
func (o *old) fileOf(text string) string {
	o.t.Helper()
	f := o.flight()
	if f == nil || f.File == "" || !strings.Contains(text, `"`+f.File+`"`) || len(text) > client.MostWhole {
		o.t.Fatalf("%.300q names no file; in flight %+v", text, f)
	}
	return o.read(filepath.Base(f.File))
}

// until polls, because processes are real.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !testbed.Await(testbed.Patience, ok) {
		t.Fatalf("not within %v: %s", testbed.Patience, what)
	}
}
