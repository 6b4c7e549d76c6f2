package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRenamedFleetFolder (found by a user: the pauses of a fleet were forgotten
// when its folder was renamed, and nothing said so): run, apply and doctor say
// where the state is, and the command that they name brings it along.
func TestRenamedFleetFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("one/heartbeat.yaml", strings.Replace(simulated, "name: fleet\n", "", 1))
	at := func(dir string, args ...string) outcome { return w.run(append(args, "-f", dir+"/heartbeat.yaml")...) }
	if o := at("one", "run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	w.put("copy/heartbeat.yaml", w.get("one/heartbeat.yaml"))
	w.put("copy/agents/triage/.heartbeat/fleet.json", w.get("one/agents/triage/.heartbeat/fleet.json"))
	if err := os.Rename(filepath.Join(w.dir, "one"), filepath.Join(w.dir, "two")); err != nil {
		t.Fatal(err)
	}
	was := w.names("state")
	for _, args := range [][]string{{"doctor"}, {"apply", "--dry-run"}, {"run", "--once"}, {"apply"}, {"run", "--once"}, {"doctor"}} {
		if o := at("two", args...); !strings.Contains(squeeze(o.stdout+o.stderr), "keeps a fleet's state wherever its folder goes") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	o := at("two", "apply")
	command := regexp.MustCompile("`(mv [^`]+)`").FindStringSubmatch(o.stderr)
	if command == nil {
		t.Fatalf("no command: %s", o.stderr)
	}
	sh := w.command()
	sh.Path, sh.Args = "/bin/sh", []string{"sh", "-ec", command[1]}
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, out)
	}
	if now := w.names("state"); len(now) != len(was)+1 {
		t.Errorf("%v became %v", was, now)
	}
	for _, args := range [][]string{{"apply"}, {"run", "--once"}} {
		if o := at("two", args...); o.status != 0 || strings.Contains(o.stderr, "under another name") {
			t.Errorf("%q afterwards: %+v", args, o)
		}
	}
	// A copy has a state of its own: the first fleet's is not offered to it.
	if err := os.Rename(filepath.Join(w.dir, "two"), filepath.Join(w.dir, "one")); err != nil {
		t.Fatal(err)
	}
	if o := at("copy", "apply"); o.status != 0 || o.stderr != "" {
		t.Errorf("a copy: %+v", o)
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
