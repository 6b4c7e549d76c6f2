package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// twoHellos has quiet and then clerk answer a prompt, and returns what a command
// prints of them; before is what it prints when nobody has said anything.
func twoHellos(w *world, command, before string) string {
	w.t.Helper()
	w.put("heartbeat.yaml", threeAgents)
	w.put("crash.json", `{"rules": []}`)
	w.ok("apply")
	if out := w.ok(command); out != before {
		w.t.Errorf("before: %s", out)
	}
	for _, agent := range []string{"quiet", "clerk"} {
		w.ok("send", agent, "hello "+agent)
		if o := w.run("run", "--once", agent); o.status != 0 {
			w.t.Fatalf("%+v", o)
		}
	}
	return w.ok(command)
}

// following starts a command with -f, and returns what it prints and what
// interrupts it.
func following(w *world, command string) (seen *testbed.Output, stop func()) {
	w.t.Helper()
	follow, seen := w.command(command, "-f"), &testbed.Output{}
	follow.Stdout = seen
	if err := follow.Start(); err != nil {
		w.t.Fatal(err)
	}
	return seen, func() {
		if err := errors.Join(follow.Process.Signal(syscall.SIGINT), follow.Wait()); err != nil {
			w.t.Error(err)
		}
	}
}

// TestLogsOfTheWholeFleet: what agents say is shown in the order of time, with
// who says it, and followed into sessions that begin later.
func TestLogsOfTheWholeFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := twoHellos(w, "logs", "")
	first, second := strings.Index(out, " quiet   > hello quiet\n"), strings.Index(out, " clerk   > hello clerk\n")
	if first < 0 || second < first || strings.Count(out, " clerk   done: hello clerk\n") != 1 {
		t.Errorf("logs:\n%s", out)
	}
	if out := w.ok("logs", "clerk", "quiet", "-n", "1"); strings.Count(out, "\n") != 1 || !strings.Contains(out, " clerk done: hello clerk\n") {
		t.Errorf("the last line of two:\n%s", out)
	}
	if out := w.ok("logs", "quiet", "--since", "1h"); strings.Contains(out, " quiet ") || !strings.Contains(out, " done: hello quiet\n") {
		t.Errorf("of one:\n%s", out)
	}
	if out := w.ok("logs", "--since", "0s"); out != "" {
		t.Errorf("since now:\n%s", out)
	}
	if o := w.run("logs", "--raw"); o.status != exitUsage {
		t.Errorf("--raw of all: %+v", o)
	}
	if o := w.run("logs", "-o", "json"); !strings.HasPrefix(o.stdout, `{"agent":"quiet","at":`) {
		t.Errorf("as JSON: %+v", o)
	}

	seen, stop := following(w, "logs")
	r := w.background()
	w.ok("send", "careful", "as it comes")
	w.ok("send", "quiet", "and again")
	for _, want := range []string{" careful done: as it comes\n", " quiet   done: and again\n"} {
		until(t, want, func() bool { return strings.Contains(seen.String(), want) })
	}
	stop()
	r.stop()
}

// Replies are shown for the whole fleet, in the order of time, and as they come.
func TestReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := twoHellos(w, "replies", "no replies\n")
	lines := strings.Split(out, "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], " quiet send, ") || lines[1] != "    done: hello quiet" || !strings.Contains(lines[2], " clerk send, ") || lines[3] != "    done: hello clerk" {
		t.Errorf("replies:\n%s", out)
	}
	if out := w.ok("replies", "-n", "1"); strings.Contains(out, "quiet") || !strings.Contains(out, "hello clerk") {
		t.Errorf("-n 1:\n%s", out)
	}
	if out := w.ok("replies", "quiet", "--since", "1h"); strings.Contains(out, "clerk") || !strings.Contains(out, "hello quiet") {
		t.Errorf("of one agent:\n%s", out)
	}
	if out := w.ok("replies", "--since", "0s"); out != "no replies\n" {
		t.Errorf("since now:\n%s", out)
	}
	if o := w.run("replies", "--since", "soon"); o.status != exitUsage || !strings.Contains(o.stderr, "neither a duration") {
		t.Errorf("%+v", o)
	}
	o := w.run("replies", "-o", "json")
	if r := envelopeOf(t, o); !*r.OK || strings.Count(o.stdout, "\n") != 3 || !strings.HasPrefix(o.stdout, `{"agent":"quiet","delivery_id":`) {
		t.Errorf("as JSON: %s", o.stdout)
	}

	seen, stop := following(w, "replies")
	r := w.background()
	w.ok("send", "careful", "as it comes")
	until(t, "the reply is shown", func() bool { return strings.Contains(seen.String(), "    done: as it comes\n") })
	if text := seen.String(); strings.Count(text, "    done: ") != 3 {
		t.Errorf("three replies are shown as:\n%s", text)
	}
	stop()
	r.stop()
}

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"90m": "2026-03-01T10:30:00+01:00", "09:30": "2026-03-01T09:30:00+01:00", "2026-02-27": "2026-02-27T00:00:00+01:00",
		"2026-02-27 18:15": "2026-02-27T18:15:00+01:00", "2026-02-27T18:15:00Z": "2026-02-27T18:15:00Z",
		"2026-02-27T18:15Z": "2026-02-27T18:15:00Z", "1w": "2026-02-22T12:00:00+01:00", "1w1d": "2026-02-21T12:00:00+01:00",
		"1d12h": "2026-02-28T00:00:00+01:00", "90d": "2025-12-01T12:00:00+01:00", "13:00": "2026-02-28T13:00:00+01:00", "-1h": "", "yesterday": "", "": "",
	} {
		got, err := parseSince(text, now)
		if (err != nil) != (want == "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}
