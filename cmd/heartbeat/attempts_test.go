package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testbed"
)

// marked lies beside a link to this program that plays a client which kills the scheduler.
const marked = "kills-its-scheduler"

// killsItsScheduler plays that client: its parent plays the probe, and is the scheduler's
// child.
func killsItsScheduler() bool {
	if _, err := os.Stat(filepath.Join(filepath.Dir(os.Args[0]), marked)); err != nil {
		return false
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/stat")
	_, after, _ := bytes.Cut(stat, []byte(") "))
	if fields := bytes.Fields(after); len(fields) > 1 {
		if pid, err := strconv.Atoi(string(fields[1])); err == nil && pid > 1 && isScheduler(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return true
}

// isScheduler reports whether a process is a heartbeat run: other commands start the client,
// too, and this program is above them.
func isScheduler(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.Contains(line, []byte("\x00run\x00"))
}

// TestWhatKillsItsSchedulerIsNotRunAgainAtOnce: each kind of command that runs beside the
// sessions, in turn as one that kills the scheduler. It ran again at once at each start,
// without end: no other agent got a session, and nobody was told why.
func TestWhatKillsItsSchedulerIsNotRunAgainAtOnce(t *testing.T) {
	t.Parallel()
	const kill = `[sh, -c, "kill -9 $PPID"]`
	for what, yaml := range map[string]string{
		"check":          "agents:\n  bad: {dir: bad, until: {check: " + kill + "}}\n",
		"poll":           "agents:\n  bad: {dir: bad, trigger: {name: t, poll: " + kill + ", every: 1s}}\n",
		"gate":           "agents:\n  bad: {dir: bad, trigger: {name: t, poll: [echo, x], every: 1s, gate: " + kill + "}}\n",
		"probe":          "agents:\n  bad: {dir: bad, command: [%s/bin/claude]}\n",
		"notify command": "ping: {command: " + kill + "}\nagents:\n  bad: {dir: bad}\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := &fleet{world: newWorld(t)}
			if what == "probe" {
				if _, err := os.Stat("/proc/self/stat"); err != nil {
					t.Skip("a grandparent is not known here: ", err)
				}
				self, err := os.Executable()
				f.put("bin/"+marked, "")
				if err == nil {
					err = os.Symlink(self, filepath.Join(f.dir, "bin", "claude"))
				}
				if err != nil {
					t.Fatal(err)
				}
				yaml = fmt.Sprintf(yaml, f.dir)
			}
			f.put("heartbeat.yaml", "version: 1\nname: fleet\nshutdown-grace: none\ndefaults:\n  command: [heartbeat, simulate]\n"+yaml+"  good: {dir: good}\n")
			f.ok("apply")
			f.ok("send", "bad", "B")
			done := func(n int) bool {
				outbox, err := os.ReadFile(filepath.Join(f.dir, "good/.heartbeat/outbox.jsonl"))
				return err == nil && strings.Contains(string(outbox), fmt.Sprintf("done: G%d\"", n))
			}
			kills := 0
			for ; kills < 4; kills++ {
				f.start()
				if kills == 2 {
					f.world.done("send", "good", "G2") // it is warned that the last scheduler was killed
				}
				ended := func() bool {
					select {
					case <-f.done:
						return true
					default:
						return false
					}
				}
				until(t, "it ends, or the good agent is done", func() bool { return ended() || done(2) })
				if done(2) && !ended() {
					break
				}
			}
			defer f.stop()
			if kills != 2 {
				t.Fatalf("the scheduler was killed %d times, want 2; its log:\n%s", kills, f.log.String())
			}
			told := func() bool {
				o := f.run("doctor")
				return strings.Contains(strings.Join(strings.Fields(o.stdout), " "), "was running when the scheduler was killed, 2 times in a row")
			}
			if !testbed.Await(patience, told) {
				t.Error("doctor says nothing")
			}
		})
	}
}
