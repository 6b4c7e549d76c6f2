package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/ptyrun"
	"heartbeat/queue"
)

// A shim that a killed scheduler left can be killed itself after the next
// scheduler has looked: the next shim finds what is left.
func TestShimEndsWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, stateDir := filepath.Join(dir, ".heartbeat"), filepath.Join(dir, "state")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	const cookie = "00112233445566778899aabbccddeeff"
	left := exec.Command("sleep", "60")
	left.Env = []string{ask.EnvSession + "=" + cookie}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- left.Wait() }()
	// One that has cleared its environment is found by its control group.
	former := &shim{term: terminal{group: ptyrun.PlanGroup()}, spec: Spec{Agent: "a", Session: "former", Token: cookie, StateDir: stateDir}, record: &hook.Record{
		// A process that is no more: its number is another one's now.
		Shim: hook.Process{PID: os.Getpid(), Start: 1},
	}}
	if err := former.keepLeftover(); err != nil {
		t.Fatal(err)
	}
	nameless, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{"/bin/sleep", "60"}, Env: []string{}, Group: former.term.group, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nameless.End(context.Background()) })
	spec, err := json.Marshal(Spec{
		Agent: "a", Session: "next", Token: "t", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
		StateDir: stateDir, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := RunShim(t.Context(), bytes.NewReader(append(spec, '\n')), &out, anybody, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(testbed.Patience):
		_ = left.Process.Kill()
		t.Error("what the former session left lives on")
	}
	if former.term.group != "" {
		select {
		case <-nameless.Done():
		case <-time.After(testbed.Patience):
			t.Error("what is in the former session's control group lives on")
		}
		if _, err := os.Stat(former.term.group); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the former session's control group is left: %v", err)
		}
	}
	// Its note is the scheduler's, which records what it has cost.
	if _, err := SweepLeftovers(t.Context(), storetest.New(t, stateDir), stateDir, "a", time.Second); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(filepath.Join(stateDir, "live")); len(names) != 0 {
		t.Errorf("it is still noted: %v", names)
	}
}

// Each dead session's processes got ten seconds of grace, whatever its own, and
// one session after the other: after a kill of everything a fleet whose clients
// do not heed SIGTERM took minutes to start.
func TestLeftoversAreEndedAtOnceByTheirOwnGrace(t *testing.T) {
	t.Parallel()
	const sessions, grace = 4, 300 * time.Millisecond
	stateDir := t.TempDir()
	for i := range sessions {
		cookie := fmt.Sprintf("%032x", 0xfeed00+i)
		s := &shim{
			spec:   Spec{Agent: "a", Session: fmt.Sprint("s", i), Token: cookie, StateDir: stateDir, Grace: grace},
			record: &hook.Record{Shim: hook.Process{PID: os.Getpid(), Start: 1}},
		}
		if err := s.keepLeftover(); err != nil {
			t.Fatal(err)
		}
		deaf := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
		deaf.Env = []string{"PATH=" + os.Getenv("PATH"), ask.EnvSession + "=" + cookie}
		out, err := deaf.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := deaf.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it ignores SIGTERM now
			t.Fatal(err)
		}
		go func() { _ = deaf.Wait() }()
	}
	begin := time.Now()
	swept, err := SweepLeftovers(t.Context(), storetest.New(t, stateDir), stateDir, "", 10*time.Minute)
	if err != nil || len(swept) != sessions {
		t.Errorf("ended %d, %v", len(swept), err)
	}
	if took := time.Since(begin); took < grace || took > testbed.Patience {
		t.Errorf("took %s", took)
	}
	if names, _ := os.ReadDir(filepath.Join(stateDir, "live")); len(names) != 0 {
		t.Errorf("still noted: %v", names)
	}
}

// when calls a function when something is logged.
type when struct {
	slog.Handler
	do func(message string)
}

func (w when) Handle(_ context.Context, r slog.Record) error { w.do(r.Message); return nil }
func (w when) Enabled(context.Context, slog.Level) bool      { return true }
func (w when) WithAttrs([]slog.Attr) slog.Handler            { return w }

// Found by the soak: the disk of the state directory was full when the client
// had just been started. Its session was taken for one that never ran: its
// entry was given again as if for the first time, and the client not ended.
func TestAStateDirectoryThatFillsUpAfterTheStartDoesNotLoseTheClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, stateDir := filepath.Join(dir, ".heartbeat"), filepath.Join(dir, "state")
	// No terminal log: that is told between the note and the start.
	if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(home, "sessions"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Agent: "a", Session: "s", Token: "0123", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
		StateDir: stateDir, Command: []string{"/bin/sh", "-c", "sleep 60"}, StartTimeout: 200 * time.Millisecond, Grace: time.Second,
	}
	full := false
	log := slog.New(when{slog.DiscardHandler, func(message string) {
		live := filepath.Join(stateDir, "live")
		if message == "cannot log the terminal" {
			full = true
			if err := errors.Join(os.Rename(live, live+"-before"), os.WriteFile(live, nil, 0o600)); err != nil {
				t.Error(err)
			}
		}
	}})
	l := &lab{t: t, dir: dir, home: home, stateDir: stateDir}
	l.queue.Add(time.Now(), queue.Letter{Prompt: "an entry"})
	o, err := l.shim(spec, log)
	if !full || o == nil || o.Why != hook.EndStartTimeout {
		t.Errorf("filled up: %t; %v; ended as %+v, want %s of a client that ran", full, err, o, hook.EndStartTimeout)
	}
}

// TestASessionThatCannotBeginSaysWhy: with a full disk its shim ended without
// an outcome, and all that status said was that it had died.
func TestASessionThatCannotBeginSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := filepath.Join(dir, ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Agent: "a", Session: "s", Token: "4567", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
		StateDir: filepath.Join(dir, "state"), Command: []string{"/bin/true"}, Grace: time.Second,
	}
	o, err := (&lab{t: t, dir: dir, home: home, stateDir: spec.StateDir, broken: "the queue cannot be read"}).shim(spec, slog.New(slog.DiscardHandler))
	if err != nil || o == nil || o.Detail == "" || o.NoRoom {
		t.Errorf("%v, ended as %+v", err, o)
	}
	if full := neverRan(fmt.Errorf("x: %w", &os.PathError{Err: syscall.ENOSPC})); !full.NoRoom {
		t.Errorf("a full disk: %+v", full)
	}
}

// Found by the soak: a session that starts on a text has offered nothing yet, and
// there is nothing to withdraw. Why it could not start was lost over that.
func TestAClientThatCannotStartOnATextSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inboxPath := filepath.Join(dir, "inbox.jsonl")
	spec := Spec{
		Agent: "a", Session: "s", Token: "89ab", Dir: dir, Home: dir, Inbox: inboxPath, StateDir: filepath.Join(dir, "state"),
		Command: []string{filepath.Join(dir, "no-such-client")}, KickoffText: "Read CLAUDE.md", Grace: time.Second,
	}
	l := &lab{t: t, dir: dir, home: dir, stateDir: spec.StateDir}
	l.queue.Add(time.Now(), queue.Letter{Prompt: "an entry"})
	o, err := l.shim(spec, slog.New(slog.DiscardHandler))
	if err != nil || o == nil || o.Why != hook.EndExited || o.ExitCode != 127 || !strings.Contains(o.Detail, "no-such-client") {
		t.Errorf("%v, ended as %+v", err, o)
	}
}

// TestADamagedNoteOfASessionIsToldOnce: it was a warning at each start, for ever.
func TestADamagedNoteOfASessionIsToldOnce(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	path := leftoverPath(stateDir, "s")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"agent":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SweepLeftovers(t.Context(), nil, stateDir, "", 0); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the first time: %v", err)
	}
	if _, err := SweepLeftovers(t.Context(), nil, stateDir, "", 0); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}
