package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// in is the world with another working directory.
func (w *world) in(dir string, args ...string) outcome {
	w.t.Helper()
	at := *w
	at.dir = filepath.Join(w.dir, dir)
	if err := os.MkdirAll(at.dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return at.run(args...)
}

// Where there is no heartbeat.yaml, the one of the fleet that has an agent there is
// used, then the one in the nearest folder above.
func TestTheFleetsFileIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("fleet/heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: ../far/triage\n")
	w.put("fleet/heartbeat.yml", "not looked at")
	w.put("fleet/sub/other.yaml", "version: 1\nname: other\nagents:\n  builder:\n    dir: builder\n")
	w.in("fleet", "apply")
	used := func(dir string, args ...string) string {
		t.Helper()
		var v validated
		o := w.in(dir, append(args, "validate", "-o", "json")...)
		if err := json.Unmarshal(envelopeOf(t, o).Data, &v); err != nil || o.status != 0 {
			t.Fatalf("in %s: %v: %+v", dir, err, o)
		}
		return strings.TrimPrefix(v.File, w.dir+"/")
	}
	const fleet = "fleet/heartbeat.yaml"
	for _, dir := range []string{"fleet", "fleet/sub/deep", "far/triage", "far/triage/src/deep"} {
		if file := used(dir); file != fleet {
			t.Errorf("in %s: %s", dir, file)
		}
	}
	if file := used("fleet/sub", "-f", "other.yaml"); file != "fleet/sub/other.yaml" {
		t.Errorf("a file that is named: %s", file)
	}

	// An agent can write into its own directory, and nobody is there to see it.
	w.put("far/triage/src/heartbeat.yaml", oneAgent)
	w.put("far/triage/heartbeat.yaml", oneAgent)
	if err := os.Remove(filepath.Join(w.dir, "far/triage/src/heartbeat.yaml")); err != nil {
		t.Fatal(err)
	}
	if file := used("far/triage/src"); file != fleet {
		t.Errorf("the agent's own file is used: %s", file)
	}
	w.put("planted/agent/.heartbeat/fleet.json", `{"file":"`+w.dir+`/fleet/heartbeat.yaml","state_dir":"`+w.dir+`/state/fleet"}`)
	w.put("planted/heartbeat.yaml", "version: 1\nname: above\nagents:\n  agent:\n    dir: agent\n")
	if file := used("planted/agent"); file != "planted/heartbeat.yaml" {
		t.Errorf("the word of a directory that is no agent's is believed: %s", file)
	}
}

// What is suggested to type works where it is read.
func TestCommandsToTypeWorkWhereTheFileIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	if o := w.in("sub", "doctor"); !strings.Contains(o.stdout, "fix   heartbeat apply triage\n") {
		t.Errorf("doctor: %s%s", o.stdout, o.stderr)
	}
	if o := w.in("sub", "init"); o.status != 0 || w.get("sub/heartbeat.yaml") == oneAgent || w.get("heartbeat.yaml") != oneAgent {
		t.Errorf("init: %+v", o)
	}
}

// TestAFleetThatRunsWithoutItsFileIsNotPassedOver: stop would end the fleet of
// the folder above.
func TestAFleetThatRunsWithoutItsFileIsNotPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(simulated, "fleet", "above", 1))
	below := *w
	below.dir = filepath.Join(w.dir, "below")
	below.put("heartbeat.yaml", strings.Replace(simulated, "triage", "below", 2))
	r := below.background()
	if err := os.Remove(filepath.Join(below.dir, "heartbeat.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"below", "below/agents/below", "below/sub"} {
		if o := w.in(dir, "status"); !strings.Contains(o.stdout, "\nbelow ") || !strings.Contains(o.stderr, "going on with the configuration of") {
			t.Errorf("in %s: %+v", dir, o)
		}
	}
	r.stop()
}

func TestWhereWasLookedForTheFleetsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := "heartbeat: cannot find heartbeat.yaml: it is not in " + w.dir + "/sub, nor in a folder above it, and no known fleet has an agent there\n"
	for name, tt := range map[string]struct{ put, file, says string }{
		"nowhere":          {"", "", none + "hint: heartbeat init writes"},
		"another ending":   {"heartbeat.yml", "", none + "hint: there is " + w.dir + "/heartbeat.yml: heartbeat -f " + w.dir + "/heartbeat.yml …"},
		"a named one":      {"", "x.yaml", "open x.yaml: no such file or directory\nhint: heartbeat init writes"},
		"named otherwise":  {"sub/x.yml", "x.yaml", "hint: there is x.yml: heartbeat -f x.yml …"},
		"named otherwise2": {"sub/y.yaml", "y.yml", "hint: there is y.yaml: heartbeat -f y.yaml …"},
	} {
		if tt.put != "" {
			w.put(tt.put, oneAgent)
		}
		for _, command := range []string{"status", "validate", "apply", "run", "reload", "send"} {
			args := []string{command}
			if command == "send" {
				args = []string{"send", "triage", "hello"}
			}
			if tt.file != "" {
				args = append(args, "-f", tt.file)
			}
			if o := w.in("sub", args...); o.status != exitConfig || !strings.Contains(o.stderr, tt.says) {
				t.Errorf("%s, %s: %+v", name, command, o)
			}
		}
		if tt.put != "" {
			if err := os.Remove(filepath.Join(w.dir, tt.put)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Who knows another program types its command.
func TestCommandsOfOtherProgramsPointToOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for word, command := range map[string]string{
		"ps": "status", "ls": "status", "up": "run", "down": "stop", "outbox": "replies",
	} {
		for _, args := range [][]string{{word}, {"help", word}} {
			if o := w.run(args...); o.status != exitUsage || !strings.Contains(o.stderr, "\nhint: heartbeat "+command+"\n") || strings.Contains(o.stderr, "did you mean") {
				t.Errorf("%q: %+v", args, o)
			}
		}
	}
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for word, ours := range elsewhere {
		if childNamed(p.Model.Node, word) != nil {
			t.Errorf("%s is a command of ours by now", word)
		}
		for one := range strings.SplitSeq(ours, ", or ") {
			if fields := strings.Fields(one); len(fields) < 2 || fields[0] != "heartbeat" || childNamed(p.Model.Node, fields[1]) == nil {
				t.Errorf("%s points to %q", word, one)
			}
		}
	}
}

// TestAFolderIsNoFile: of -f FOLDER it was said that it is a directory, and not which file
// is in it.
func TestAFolderIsNoFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("fleet/heartbeat.yaml", oneAgent)
	w.put("other/heartbeat.yml", oneAgent)
	w.put("none/x", "")
	for dir, hint := range map[string]string{
		"fleet": "there is fleet/heartbeat.yaml: heartbeat -f fleet/heartbeat.yaml …", "other": "there is other/heartbeat.yml: heartbeat -f other/heartbeat.yml …",
		"none": "-f names a file, not a folder",
	} {
		for _, command := range []string{"status", "validate", "apply"} {
			if o := w.run("-f", dir, command); o.status != exitConfig || !strings.HasSuffix(o.stderr, "\nhint: "+hint+"\n") {
				t.Errorf("%s -f %s: %+v", command, dir, o)
			}
		}
	}
}

// TestInitBesideAFileWithTheOtherEnding: it wrote a second file without a word, which was
// used from then on in place of the first.
func TestInitBesideAFileWithTheOtherEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yml", oneAgent)
	if o := w.run("init"); o.status != exitError || !strings.Contains(o.stderr, "heartbeat.yml is there already") || !strings.Contains(o.stderr, "hint: heartbeat -f heartbeat.yml validate") {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "heartbeat.yaml")); err == nil {
		t.Error("it was written")
	}
	if o := w.run("init", "-f", "heartbeat.yaml"); o.status != 0 || !strings.Contains(o.stderr, "heartbeat.yml is there, too") {
		t.Errorf("%+v", o)
	}
}
