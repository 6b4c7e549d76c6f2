package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAQueueThatCannotBeReadIsSaid (inbox and dead-letter panicked): whatever
// file of a queue cannot be read, each command that looks at queues says so, or
// does without it.
func TestAQueueThatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	commands := []string{
		"inbox triage", "inbox triage show x", "inbox triage drop x", "dead-letter triage", "dead-letter triage show x",
		"dead-letter triage retry --all", "dead-letter triage purge --all", "send triage hello", "recover triage", "status", "history", "logs triage",
	}
	for _, file := range []string{"inbox.jsonl", ".inbox-offset", ".in-flight", ".dead-letter.jsonl", "outbox.jsonl", "session.json", ".hook-lock", ".", "sessions"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated)
			w.put("agents/triage/.heartbeat/inbox.jsonl", "one\n")
			path := filepath.Join(w.dir, "agents/triage/.heartbeat", file)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if file == "." || file == "sessions" {
				w.put(filepath.Join("agents/triage/.heartbeat", file), "not a folder")
			} else if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			said := 0
			for _, command := range commands {
				for _, format := range []string{"text", "json"} {
					o := w.run(append(strings.Fields(command), "-o", format)...)
					if o.status < 0 || o.status > exitError || strings.Contains(o.stderr, "goroutine ") {
						t.Errorf("%s: %+v", command, o)
						continue
					}
					if format == "json" {
						envelopeOf(t, o)
					} else if o.status == exitError && !strings.Contains(o.stderr, "heartbeat: cannot ") && !strings.Contains(o.stderr, "heartbeat: the queue needs a person: ") {
						t.Errorf("%s says not what it cannot do: %+v", command, o)
					}
					said += o.status
				}
			}
			if unread := file == "inbox.jsonl" || file == ".dead-letter.jsonl" || file == "."; unread && said == 0 {
				t.Error("no command has noticed anything")
			}
		})
	}
}

// TestNoResultIsNotPrinted: a command may pass on another function's pointer
// and error.
func TestNoResultIsNotPrinted(t *testing.T) {
	t.Parallel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var list *queueList
	if status := (&output{w: out, err: out}).finish(list, os.ErrInvalid); status != exitError {
		t.Errorf("status %d", status)
	}
	if text, err := os.ReadFile(out.Name()); err != nil || string(text) != "heartbeat: invalid argument\n" {
		t.Errorf("%q, %v", text, err)
	}
}
