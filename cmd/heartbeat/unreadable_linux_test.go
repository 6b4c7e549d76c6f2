package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestAQueueThatCannotBeReadIsSaid (inbox and dead-letter panicked; an outbox or an entry in
// flight that was replaced read as empty): whatever file of a queue cannot be read, each
// command that looks at queues says so, or does without it, and none waits for it.
func TestAQueueThatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	commands := []string{
		"inbox triage", "inbox triage show x", "inbox triage drop x", "dead-letter triage", "dead-letter triage show x",
		"dead-letter triage retry --all", "dead-letter triage purge --all", "send triage hello", "recover triage", "status", "history", "logs triage",
		"replies triage", "doctor triage", "next triage",
	}
	// Which of the readers say of which file that they cannot read it, before anything of
	// ours has set it aside.
	said := map[string][]string{
		"inbox.jsonl":        {"status", "doctor triage", "inbox triage"},
		"urgent.jsonl":       {"status", "doctor triage", "inbox triage"},
		".in-flight":         {"status", "doctor triage", "history"}, // inbox sets it aside
		".urgent-in-flight":  {"status", "doctor triage", "history"}, // inbox sets it aside
		".waiting.jsonl":     {"status", "doctor triage", "inbox triage", "history"},
		".dead-letter.jsonl": {"status", "doctor triage", "dead-letter triage", "history"},
		"outbox.jsonl":       {"status", "doctor triage", "replies triage", "history"},
		"outbox.1.jsonl":     {"status", "doctor triage", "replies triage", "history"},
		".inbox-offset":      {"doctor triage"}, ".inbox-meta": {"doctor triage"}, ".ids": {"doctor triage"},
		"session.json": nil, ".hook-lock": nil, ".": nil, "sessions": nil, "later": nil,
	}
	type place struct {
		in     intruder
		file   string
		format string // which the commands answer in
	}
	var places []place
	for _, in := range intruders() {
		if in.name == "sparse file of 4 TB" { // this can be read; who puts one there is TestWhateverAnAgentPutsInPlaceOfOurFiles
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(said)) {
			places = append(places, place{in, file, "text"}, place{in, file, "json"})
		}
	}
	for _, p := range testbed.SampleOf(t, places, 14) {
		t.Run(p.in.name+" as "+p.file+" in "+p.format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated)
			w.put("agents/triage/.heartbeat/inbox.jsonl", "one\n")
			w.put("victim/precious", "precious")
			path := filepath.Join(w.dir, "agents/triage/.heartbeat", p.file)
			if err := errors.Join(os.RemoveAll(path), p.in.put(t, path, filepath.Join(w.dir, "neighbour"), filepath.Join(w.dir, "victim"))); err != nil {
				t.Fatal(err)
			}
			for _, reader := range said[p.file] {
				if o := w.run(strings.Fields(reader)...); !saysUnread(o, path) {
					t.Errorf("%s says nothing of it: %+v", reader, o)
				}
			}
			noticed := 0
			for _, command := range commands {
				noticed += w.survives(command, p.format)
			}
			if unread := p.file == "inbox.jsonl" || p.file == ".dead-letter.jsonl" || p.file == "."; unread && noticed == 0 {
				t.Error("no command has noticed anything")
			}
			if data := w.get("victim/precious"); data != "precious" {
				t.Errorf("the victim holds %q", data)
			}
		})
	}
}

// saysUnread reports whether an answer says that a file cannot be read.
func saysUnread(o outcome, path string) bool {
	text := strings.Join(strings.Fields(o.stdout+" "+o.stderr), " ") // doctor breaks lines
	return strings.Contains(text, "cannot read \""+path+"\"") || strings.Contains(text, "cannot open \""+path+"\"") ||
		strings.Contains(text, "cannot open inbox \""+path+"\"") || strings.Contains(text, "\""+path+"\" is damaged")
}

// survives runs a command, and returns its exit status: it works, or says what it cannot
// do.
func (w *world) survives(command, format string) int {
	w.t.Helper()
	o := w.run(append(strings.Fields(command), "-o", format)...)
	if o.status < 0 || o.status > exitError || strings.Contains(o.stderr, "goroutine ") {
		w.t.Errorf("%s: %+v", command, o)
		return 0
	}
	if format == "json" {
		envelopeOf(w.t, o)
	} else if o.status == exitError && !strings.HasPrefix(command, "doctor") && !strings.Contains(o.stderr, "heartbeat: cannot ") &&
		!strings.Contains(o.stderr, "heartbeat: the queue needs a person: ") {
		w.t.Errorf("%s says not what it cannot do: %+v", command, o)
	}
	return o.status
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
