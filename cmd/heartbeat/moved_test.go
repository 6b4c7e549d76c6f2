package main

import (
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestARenamedFleetIsTold (found by a user: the pauses of a fleet were forgotten, and nothing
// said so): run, apply and doctor say where the state under its former name is, and the command
// that they name brings it along.
func TestARenamedFleetIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.done("run", "--once")
	w.put("heartbeat.yaml", strings.Replace(simulated, "name: fleet\n", "name: troop\n", 1))
	was := w.names("state")
	for _, args := range [][]string{{"doctor"}, {"apply", "--dry-run"}, {"run", "--once"}, {"apply"}, {"run", "--once"}, {"doctor"}} {
		if o := w.run(args...); !strings.Contains(squeeze(o.stdout+o.stderr), "keeps a fleet's state wherever its folder goes") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	o := w.run("apply")
	command := regexp.MustCompile("`(mv [^`]+)`").FindStringSubmatch(o.stderr)
	if command == nil {
		t.Fatalf("no command: %s", o.stderr)
	}
	w.shell(command[1])
	if now := w.names("state"); len(now) != len(was)+1 {
		t.Errorf("%v became %v", was, now)
	}
	for _, args := range [][]string{{"apply"}, {"run", "--once"}} {
		if o := w.run(args...); o.status != 0 || strings.Contains(o.stderr, "under another name") {
			t.Errorf("%q afterwards: %+v", args, o)
		}
	}
}

// TestASecondRunIsToldOfTheFirst (found by a user: with another state directory
// the hint was to look at a status that does not show it, once for each agent).
func TestASecondRunIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"  builder:\n    dir: agents/builder\n    command: [heartbeat, simulate]\n")
	r := w.background()
	other := *w
	other.env = append(slices.Clone(w.env), "HEARTBEAT_STATE_DIR="+filepath.Join(w.dir, "elsewhere"))
	until(t, "the directories are marked", func() bool { return slices.Contains(w.names("agents/builder/.heartbeat"), "fleet.json") })
	for _, args := range [][]string{{"apply"}, {"run"}} {
		o := other.run(args...)
		if args[0] == "apply" {
			continue // which does not make them its own
		}
		pid := "(process " + strconv.Itoa(r.cmd.Process.Pid) + ")"
		want := "cannot lock the directories of 2 agents (triage, builder): another heartbeat " + pid + " runs them; its fleet is "
		if runtime.GOOS != "linux" {
			want = strings.Replace(want, " "+pid, "", 1)
		}
		if o.status != exitError || strings.Count(o.stderr, "cannot lock") != 1 || !strings.Contains(o.stderr, want) ||
			!strings.Contains(o.stderr, w.dir+"/heartbeat.yaml") || !strings.Contains(o.stderr, w.dir+"/state/fleet") || strings.Contains(o.stderr, "heartbeat status") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	r.stop()
}

// TestAPauseInAnotherStoreIsSaid (found by a user): with another state directory it was said to
// be done where no run had the agent, and waited ten seconds for the run that had it, to say that
// this one does not answer. So did the resume.
func TestAPauseInAnotherStoreIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	other := *w
	other.env = append(slices.Clone(w.env), "HEARTBEAT_STATE_DIR="+filepath.Join(w.dir, "elsewhere"))
	until(t, "the directory is marked", func() bool { return slices.Contains(w.names("agents/triage/.heartbeat"), "fleet.json") })
	said := func(o outcome) bool {
		return strings.Contains(o.stderr, "agent triage was run with another store") && strings.Contains(o.stderr, w.dir+"/state/fleet") && strings.Contains(o.stderr, "use one state directory")
	}
	if o := other.run("pause", "triage"); o.status != exitNotRunning || !said(o) || strings.Contains(o.stderr, "does not answer") {
		t.Errorf("while it runs: %+v", o)
	}
	r.stop()
	for _, command := range []string{"pause", "resume"} {
		if o := other.run(command, "triage"); o.status != exitOK || !said(o) {
			t.Errorf("%s: %+v", command, o)
		}
	}
	if o := w.run("pause", "triage"); o.status != exitOK || said(o) {
		t.Errorf("with its own: %+v", o)
	}
}

// TestABackupOfAnotherFleetIsSaid: it was restored, and only doctor said so later.
func TestABackupOfAnotherFleetIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("other/heartbeat.yaml", strings.Replace(simulated, "name: fleet", "name: other", 1))
	w.done("run", "--once")
	w.ok("backup", "own.db")
	for _, args := range [][]string{{"run", "--once"}, {"backup", w.dir + "/other.db"}} {
		if o := w.in("other", append([]string{"-f", w.dir + "/other/heartbeat.yaml"}, args...)...); o.status != exitOK {
			t.Fatalf("%+v", o)
		}
	}
	if o := w.run("restore", "own.db"); o.status != exitOK || strings.Contains(o.stderr, "run with a store") {
		t.Errorf("its own: %+v", o)
	}
	if o := w.run("restore", "other.db"); o.status != exitOK || !strings.Contains(o.stderr, "agent triage was run with a store that is not in") {
		t.Errorf("another's: %+v", o)
	}
}
