package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/flock"
	"heartbeat/internal/testbed"
)

// TestQueueGoes walks the ways in which that happens, every fourth by the sample, all by
// the agent itself in the middle of a turn: the session hung past its timeout,
// nine lines of the log a second said that something could not be locked, and
// the prompts were gone without a word.
func TestQueueGoes(t *testing.T) {
	t.Parallel()
	ways := map[string]struct{ command, says string }{
		"removed":      {"rm -rf .heartbeat", ".heartbeat is gone"},
		"moved away":   {"mv .heartbeat elsewhere", ".heartbeat is gone"},
		"cloned again": {"rm -rf .heartbeat; mkdir .heartbeat", ".heartbeat is another one"},
		"a file":       {"rm -rf .heartbeat; echo x >.heartbeat", ".heartbeat is another one"},
		"a link":       {"mv .heartbeat elsewhere; ln -s elsewhere .heartbeat", ".heartbeat is another one"},
		"the lock":     {"rm .heartbeat/.session-lock; echo x >.heartbeat/.session-lock", ".session-lock is another one"},
		"dir removed":  {"rm -rf $PWD", "agents/triage is gone"},
		"dir moved":    {"mv $PWD $PWD.old; mkdir $PWD", "agents/triage is another one"},
	}
	for _, name := range testbed.SampleOf(t, slices.Sorted(maps.Keys(ways)), 4) {
		way := ways[name]
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, fmt.Sprintf(`{"rules": [
				{"match": "vanish", "steps": [{"tool": "Bash", "command": %q}, {"hang": true}]},
				{"steps": [{"reply": "ok"}]}]}`, way.command), "timeout: 5m")
			f.ok("send", "triage", "vanish")
			for i := range 3 {
				f.ok("send", "triage", fmt.Sprint("prompt ", i))
			}
			f.start()
			until(t, "the session has ended", func() bool { return len(f.ends()) > 0 })
			// A look in the middle of `rm -rf` sees what has gone so far.
			tells := func(text string) bool {
				return strings.Contains(text, way.says) || strings.HasPrefix(way.command, "rm -rf .heartbeat") && strings.Contains(text, " is gone")
			}
			if got := f.ends()[0]; !tells(got) && !strings.Contains(got, "its directory was replaced") {
				t.Errorf("it ended by %q, want %q", got, way.says)
			}
			if name == "the lock" { // what was queued still is, and that is done
				until(t, "the queue is worked on", func() bool { return f.agent("triage").Acknowledged == 3 })
				if events := f.ok("events", "triage"); strings.Contains(events, "queue-lost") || strings.Contains(f.run("status").stdout, "was lost") {
					t.Errorf("a false alarm:\n%s", events)
				}
				return
			}
			until(t, "the journal tells", func() bool { return strings.Contains(f.run("events", "triage").stdout, "queue-lost") })
			events := f.ok("events", "triage")
			if !tells(events) || !strings.Contains(events, "3 prompts were queued") || !strings.Contains(events, "was in flight (send)") {
				t.Errorf("events:\n%s", events)
			}
			if n := strings.Count(f.log.String(), "WARN"); n > 12 {
				t.Errorf("%d warnings in the log", n)
			}
			status := func() string { return f.run("status").stdout }
			until(t, "status tells", func() bool { return strings.Contains(status(), "! triage: its queue was lost") })
			if !strings.Contains(status(), "3 prompts were queued") {
				t.Errorf("status:\n%s", status())
			}
			if err := os.RemoveAll(filepath.Join(f.dir, "agents/triage/.heartbeat")); err != nil {
				t.Fatal(err)
			}
			f.ok("apply", "triage")
			until(t, "a prompt can be queued", func() bool { return f.run("send", "triage", "after that").status == 0 })
			until(t, "it works again", func() bool { return f.agent("triage").Acknowledged > 0 })
			f.ok("resume", "triage")
			if strings.Contains(status(), "was lost") {
				t.Errorf("status after a resume:\n%s", status())
			}
		})
	}
}

// TestALockThatIsHeldStopsNoVerdict: whoever holds the hook lock, a session ends
// when its time is over, and the entry is dealt with once that can be.
func TestALockThatIsHeldStopsNoVerdict(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": [{"match": "attempt 2", "steps": [{"reply": "ok"}]}, {"match": "hang", "steps": [{"hang": true}]}]}`, "timeout: 7s", "on-orphan: retry")
	f.ok("send", "triage", "hang")
	until(t, "the turn has begun", func() bool { return strings.Contains(f.run("logs", "triage").stdout, "> ") })
	unlock, err := flock.Lock(t.Context(), filepath.Join(f.dir, "agents/triage/.heartbeat/.hook-lock"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the session has ended", func() bool { return len(f.ends()) > 0 })
	if got := f.ends()[0]; !strings.HasPrefix(got, "timeout") {
		t.Errorf("it ended by %q", got)
	}
	until(t, "the queue could not be locked", func() bool { return strings.Contains(f.log.String(), "cannot recover agent") })
	if n := strings.Count(f.log.String(), "WARN"); n > 12 {
		t.Errorf("%d warnings in the log", n)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	until(t, "the entry is done", func() bool { return f.agent("triage").Acknowledged == 1 })
}

// TestARunWhoseSocketGoes: who logged out took /run/user/UID along, and with it
// the only way to pause, trigger or reload the fleet that went on.
func TestARunWhoseSocketGoes(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": []}`)
	for _, what := range []string{"control.sock", "control.lock", "."} {
		f.runs()
		f.ok("pause", "triage")
		run := filepath.Join(f.dir, "state/fleet/run")
		var before os.FileInfo
		until(t, "the socket is there", func() (there bool) { // without its lock it is made anew
			var err error
			before, err = os.Lstat(filepath.Join(run, "control.sock"))
			return err == nil
		})
		if err := os.RemoveAll(filepath.Join(run, what)); err != nil {
			t.Fatal(err)
		}
		if what != "control.lock" {
			until(t, what+" is there again", func() bool {
				now, err := os.Lstat(filepath.Join(run, "control.sock"))
				return err == nil && !os.SameFile(before, now)
			})
		}
		until(t, "it can be resumed without "+what, func() bool { return f.run("resume", "triage").status == 0 })
	}
}
