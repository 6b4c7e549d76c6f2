package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestDoctorProbe: a good client once for all agents that use it, kept for the next run;
// a bad one with the promise that it breaks; what is no client, with why. No folder of a
// probe is left.
func TestDoctorProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  a: {dir: a, command: [heartbeat, simulate]}\n  b: {dir: b, command: [heartbeat, simulate, --max-time, 1m]}\n")
	out := w.ok("doctor", "--probe")
	if !strings.Contains(out, "heartbeat simulate --api  (a, b)") || !strings.Contains(out, "good: 19 of 19 promises kept, 0 broken") {
		t.Errorf("a good client:\n%s", out)
	}
	if kept := w.names("state/.clients"); len(kept) != 1 {
		t.Errorf("kept: %q", kept)
	}
	w.put("bad/claude", "#!/bin/sh\nexec "+testbed.Program(t, "heartbeat")+" simulate --api --broken exit-2-twice \"$@\"\n")
	w.put("other.yaml", "version: 1\nname: other\nagents:\n  c: {dir: c, command: [bad/claude]}\n  d: {dir: d, command: [/bin/cat]}\n")
	if err := os.Chmod(filepath.Join(w.dir, "bad/claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := w.run("doctor", "--probe", "--client", "bad/claude")
	if o.status != exitError || !strings.Contains(o.stdout, "broken hand-over") || !strings.Contains(o.stdout, "2 times in one request") ||
		!strings.Contains(o.stderr, "hint: go back to a version that keeps the promises") {
		t.Errorf("a bad client: %+v", o)
	}
	o = w.run("doctor", "--probe", "-f", "other.yaml")
	if o.status != exitError || !strings.Contains(o.stdout, "bad/claude is a script, and what it runs is not known") ||
		!strings.Contains(o.stdout, "/bin/cat is not the client itself") {
		t.Errorf("no client: %+v", o)
	}
	for _, name := range w.names(".") {
		if strings.HasPrefix(name, "heartbeat-probe-") {
			t.Errorf("%s is left", name)
		}
	}
	if o := w.run("doctor", "--client", "x"); o.status != exitUsage {
		t.Errorf("--client alone: %+v", o)
	}
}
