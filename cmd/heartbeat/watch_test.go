package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestStatusWatch: on a terminal each page stands in the place of the last and
// leaves nothing behind, elsewhere they follow each other, and a reader that goes
// away ends it.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": []}`)
	child, out := f.sit("status", "--watch")
	until(t, "the agent is shown", func() bool { return strings.Contains(out.String(), "triage  idle ") })
	f.runs()
	f.ok("pause", "triage")
	until(t, "the pause is shown", func() bool { return strings.Contains(out.String(), "triage: paused by a person for ") })
	press(t, child, "\x03")
	if code := exited(t, child); code != exitOK {
		t.Errorf("status %d", code)
	}
	text := out.String()
	if strings.Count(text, "\x1b[?1049h") != 1 || strings.Index(text, "\x1b[?1049l") < strings.LastIndex(text, "triage") || strings.Count(text, "\x1b[H") < 2 {
		t.Errorf("it does not give the terminal back: %q", text)
	}

	plain := f.command("status", "--watch")
	seen := &testbed.Output{}
	plain.Stdout = seen
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "two pages", func() bool { return strings.Count(seen.String(), "1 agent: 1 paused\n") == 2 })
	if err := errors.Join(plain.Process.Signal(syscall.SIGINT), plain.Wait()); err != nil || strings.Contains(seen.String(), "\x1b") {
		t.Errorf("without a terminal: %v, %q", err, seen.String())
	}
	if out := brokenPipe(t, f.world, "status", "--watch"); out != "status 0, stderr \"\"" {
		t.Errorf("a reader that has gone: %s", out)
	}
}

// brokenPipe runs the program with a stdout that nobody reads any more.
func brokenPipe(t *testing.T, w *world, args ...string) string {
	t.Helper()
	cmd := w.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its status is looked at
	return fmt.Sprintf("status %d, stderr %q", cmd.ProcessState.ExitCode(), stderr.String())
}

// Each command that prints lines of its own ends in silence when nobody reads
// them.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", threeAgents)
	w.put("crash.json", `{"rules": []}`)
	w.ok("apply")
	w.ok("send", "clerk", "hello")
	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	for _, args := range []string{"status", "replies", "logs", "logs -f", "replies -f", "inbox", "dead-letter", "history", "next", "explain", "answer clerk"} {
		if out := brokenPipe(t, w, strings.Fields(args)...); out != "status 0, stderr \"\"" {
			t.Errorf("%s: %s", args, out)
		}
	}
}

// What many sessions of an agent did alike is one line among those of others.
func TestHistoryFoldsWhatIsAlike(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	past := pastSessions{last: map[string]*happened{}}
	for i := range 100 {
		past.add(happened{At: at.Add(time.Duration(i) * time.Minute), Agent: "minutely", Kind: "session", Why: "drained", Acknowledged: 2, DurationMS: 1000, short: fmt.Sprint(i)}, 20)
		if i == 50 {
			past.add(happened{At: at, Agent: "builder", Kind: "session", Why: "drained", short: "b"}, 20)
		}
	}
	past.add(happened{At: at, Agent: "minutely", Kind: "session", Why: "crashed", short: "c"}, 20)
	all := past.list()
	if len(all) != 3 || all[0].Times != 100 || all[0].Acknowledged != 200 || all[0].DurationMS != 100*1000 || all[0].short != "99" || all[1].Agent != "builder" || all[2].Why != "crashed" {
		t.Errorf("%+v", all)
	}
	var p page
	pastEvents{all}.text(&p)
	if !strings.Contains(p.buf.String(), "100 sessions  1m40s") {
		t.Errorf("%s", p.buf.String())
	}
}

// TestWhoFollowsEndsWithItsReader: behind ssh a follower that had nothing to write
// stayed for ever when the connection ended.
func TestWhoFollowsEndsWithItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	for _, args := range [][]string{{"events", "-f"}, {"replies", "-f"}, {"logs", "-f"}, {"logs", "-f", "triage"}} {
		cmd := w.command(args...)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = write
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		write.Close()
		read.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
