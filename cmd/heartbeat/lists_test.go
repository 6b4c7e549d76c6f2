package main

import (
	"strings"
	"testing"
	"time"
)

// Lists stand in 80 columns, whatever ids triggers make, and the ids that they
// show can be typed.
func TestListsFitThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	long := "triage/morning-mail@2026-03-01T11:58:00+01:00"
	w.ok("send", "triage", "--id", long, strings.Repeat("look through all mails ", 20))
	typed := func(args ...string) string {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(w.ok(args...)), "\n")
		for _, line := range lines {
			if width(line) > 80 {
				t.Errorf("%q: %d columns: %s", args, width(line), line)
			}
		}
		if next := len(lines) == 5 && strings.HasPrefix(lines[3], "heartbeat dead-letter show ID "); len(lines) != 2 && !next {
			t.Fatalf("%q: %q", args, lines)
		}
		return strings.Fields(lines[1])[0]
	}
	if id := typed("inbox", "triage"); id == long || w.ok("inbox", "triage", "drop", id) != "triage: 1 entry dropped\n" {
		t.Errorf("dropped by %s", id)
	}
	id := typed("dead-letter", "triage")
	if history := w.ok("history"); !strings.Contains(history, "  "+id+"  dropped\n") {
		t.Errorf("history does not name %s:\n%s", id, history)
	}
	if out := w.ok("dead-letter", "triage", "retry", id); out != "triage: 1 entry queued again\n" {
		t.Errorf("retried by %s: %s", id, out)
	}
}

// A line that was appended by hand has no id but the one that is shown: it
// lasts also where nothing has run yet.
func TestALineOfAQueueThatNeverRanIsDroppedByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	w.put("agents/triage/.heartbeat/inbox.jsonl", "look at this\nand at that\n")
	var list queueList
	w.into(&list, "inbox", "triage")
	if len(list.Entries) != 2 {
		t.Fatalf("queued: %+v", list)
	}
	id := list.Entries[1].DeliveryID
	if out := w.ok("inbox", "triage", "show", id); !strings.HasSuffix(out, "\n\n    and at that\n") {
		t.Errorf("show: %s", out)
	}
	if out := w.ok("inbox", "triage", "drop", id); out != "triage: 1 entry dropped\n" {
		t.Errorf("drop: %s", out)
	}
	if out := w.ok("inbox", "triage"); !strings.Contains(out, "look at this") || strings.Contains(out, "that") {
		t.Errorf("left: %s", out)
	}
}

func TestHistoryFitsThePage(t *testing.T) {
	t.Parallel()
	var p page
	pastEvents{[]happened{
		{At: time.Now(), Agent: "reviewer", Kind: "session", DurationMS: time.Hour.Milliseconds(), Acknowledged: 100, Why: "drained", short: "2d3bf091"},
		{At: time.Now(), Agent: "triage", Kind: "dead-letter", Why: "poison", short: "a554d8be0a24"},
	}}.text(&p)
	for line := range strings.Lines(p.buf.String()) {
		if width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("%d columns: %s", width(line)-1, line)
		}
	}
}

// What is shown to type next is about the fleet that was asked about.
func TestCommandsToTypeNameTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.ok("init", "-f", "my fleet.yaml"); !strings.Contains(out, "  heartbeat -f 'my fleet.yaml' apply ") {
		t.Errorf("init: %s", out)
	}
	if out := w.ok("init"); !strings.Contains(out, "  heartbeat apply ") {
		t.Errorf("init: %s", out)
	}
	o := w.run("doctor", "-f", "my fleet.yaml")
	if !strings.Contains(o.stdout, "fix   heartbeat -f 'my fleet.yaml' apply triage\n") {
		t.Errorf("doctor: %s%s", o.stdout, o.stderr)
	}
	w.env = append(w.env, "HEARTBEAT_FILE=my fleet.yaml")
	if o := w.run("doctor"); !strings.Contains(o.stdout, "fix   heartbeat apply triage\n") {
		t.Errorf("doctor: %s%s", o.stdout, o.stderr)
	}
}

// A trigger's prompt that is over max-entry was lost; a person finds its
// beginning among the dead letters.
func TestAPromptThatIsTooLargeIsADeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", `version: 1
name: fleet
agents:
  triage:
    dir: agents/triage
    max-entry: 4KiB
    command: [heartbeat, simulate]
    trigger:
      poll: [sh, -c, "printf begins; head -c 9000 /dev/zero | tr '\\0' x"]
`)
	if o := w.run("run", "--once", "--fire"); o.status != 1 {
		t.Errorf("status %d, want 1: something was given up\n%s%s", o.status, o.stdout, o.stderr)
	}
	lines := strings.Split(w.ok("dead-letter", "triage"), "\n")
	if len(lines) != 6 || !strings.Contains(lines[1], "too-large") || !strings.Contains(lines[1], "begins") {
		t.Fatalf("dead letters: %q", lines)
	}
	id := strings.Fields(lines[1])[0]
	if out := w.ok("dead-letter", "triage", "show", id); !strings.Contains(out, "reason:   too-large") || !strings.Contains(out, "x… (9006 bytes in all)\n\n    heartbeat send triage ") || strings.Contains(out, " retry ") {
		t.Errorf("show: %.300s … %s", out, out[max(0, len(out)-300):])
	}
	if o := w.run("dead-letter", "triage", "retry", id); o.status != 1 || !strings.Contains(o.stderr, "it is too-large") {
		t.Errorf("retry: status %d, %s", o.status, o.stderr)
	}
}
