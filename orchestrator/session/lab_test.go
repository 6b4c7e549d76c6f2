package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
)

// anybody is a person.
func anybody(int, string) error { return nil }

// lab is an agent's folder for sessions whose client is a shell script.
type lab struct {
	t                         *testing.T
	dir, home, stateDir, user string
	queue                     *inbox.Queue
}

func newLab(t *testing.T, prompts ...string) *lab {
	t.Helper()
	dir := t.TempDir()
	l := &lab{
		t: t, dir: dir, home: filepath.Join(dir, ".heartbeat"),
		stateDir: filepath.Join(dir, "state"), user: filepath.Join(dir, "user"),
	}
	if err := errors.Join(os.Mkdir(l.home, 0o700), os.Mkdir(l.user, 0o700)); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.queue, err = inbox.Open(l.place()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.queue.Close() })
	for _, p := range prompts {
		if _, err := l.queue.Append(t.Context(), inbox.Letter{Source: "send", Prompt: p}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) place() inbox.Place {
	return inbox.Place{Inbox: filepath.Join(l.home, "inbox.jsonl"), Home: l.home}
}

// id is the session's, as the client is told.
const id = "11111111-2222-4333-8444-555555555555"

// shown is a start-timeout within which a client's script has written what it
// writes, also on a busy machine.
const shown = 4 * time.Second

// run runs a session to its end. The script gets the client's arguments.
func (l *lab) run(script string, change ...func(*Spec)) *Outcome {
	l.t.Helper()
	spec := Spec{
		Agent: "a", Session: id, Token: rand.Text(), Dir: l.dir, Home: l.home,
		Inbox: filepath.Join(l.home, "inbox.jsonl"), StateDir: l.stateDir, Grace: 5 * time.Second,
		Command: []string{"/bin/sh", "-c", script, "client"},
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.user},
		Policy:  hook.Policy{Mode: hook.Drain, Deliver: hook.DeliverStderr, MaxContinuations: 20},
	}
	for _, c := range change {
		c(&spec)
	}
	line, err := json.Marshal(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	// The life pipe stays open.
	orders, life := io.Pipe()
	defer life.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := RunShim(ctx, io.MultiReader(bytes.NewReader(append(line, '\n')), orders), &out, anybody, slog.New(slog.DiscardHandler)); err != nil {
		l.t.Fatal(err)
	}
	var last Report
	for reports := json.NewDecoder(&out); ; {
		var r Report
		if err := reports.Decode(&r); err != nil {
			break
		}
		last = r
	}
	if last.Outcome == nil {
		l.t.Fatalf("no outcome; the last report: %+v", last)
	}
	return last.Outcome
}
