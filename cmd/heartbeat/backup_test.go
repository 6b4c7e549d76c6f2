package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestABackupIsRestored: it is written while the scheduler runs, and put back only while none
// does; what is no backup changes nothing.
func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	if o := w.run("backup"); o.status != exitError || !strings.Contains(o.stderr, "has no store yet") || !strings.Contains(o.stderr, "heartbeat run makes it") {
		t.Errorf("%+v", o)
	}
	r := w.background()
	if out := w.ok("backup", "first.db"); !strings.Contains(out, w.dir+"/first.db") {
		t.Error(out)
	}
	if o := w.run("backup", "first.db"); o.status != exitError || !strings.Contains(o.stderr, "exists already") {
		t.Errorf("%+v", o)
	}
	w.ok("pause", "triage")
	if o := w.run("restore", "first.db"); o.status != exitError || !strings.Contains(o.stderr, "heartbeat stop ends") {
		t.Errorf("%+v", o)
	}
	r.stop()
	daily, err := filepath.Glob(filepath.Join(w.dir, "state", "*", "backups", "heartbeat-*.db"))
	if err != nil || len(daily) != 1 {
		t.Errorf("the run has written %q, %v", daily, err)
	}
	const paused = "triage paused: by a person"
	if out := w.ok("events"); !strings.Contains(out, paused) {
		t.Errorf("before:\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "text"), []byte(strings.Repeat("text\n", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"text", "none.db", "heartbeat.yaml"} {
		if o := w.run("restore", wrong); o.status != exitError || !strings.Contains(w.ok("events"), paused) {
			t.Errorf("%s: %+v", wrong, o)
		}
	}
	out := w.ok("restore", "first.db")
	if strings.Contains(w.ok("events"), paused) || !strings.Contains(out, ".before-restore-1") {
		t.Errorf("%s%s", out, w.ok("events"))
	}
	if plain := strings.Join(strings.Fields(out), " "); !strings.Contains(plain, ", written 20") || !strings.Contains(plain, " TABLE GONE BACK ") || !strings.Contains(plain, " pauses 1 0 ") {
		t.Errorf("what goes back is not said:\n%s", out)
	}
	w.ok("restore", strings.TrimSpace(out[strings.LastIndex(out, " ")+1:]))
	if !strings.Contains(w.ok("events"), paused) {
		t.Errorf("and back:\n%s", w.ok("events"))
	}
}

// TestARestoreForgetsNoFireAndNoCost: what has fired since the backup does not fire again, and what was
// spent since counts for budgets.
func TestARestoreForgetsNoFireAndNoCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  a:\n    dir: agents/a\n    command: [heartbeat, simulate]\n    budget: {day: {turns: 2}}\n    timezone: Etc/GMT+12\n"+
		"    triggers:\n      - {watch: [\"in/*\"], prompt: \"Look at {{.Path}}\"}\n")
	w.put("agents/a/in/before", "x")
	r := w.background()
	w.ok("backup", "b.db")
	for _, name := range []string{"one", "two"} {
		w.put("agents/a/in/"+name, "x")
		until(t, name+" has fired", func() bool { return strings.Contains(w.ok("events"), "in/"+name) })
	}
	until(t, "the budget is spent", func() bool { return strings.Contains(w.ok("status"), "budget for the day is spent") })
	r.stop()
	queued := strings.Count(w.ok("inbox"), "Look at") // what is left of them: the budget is spent
	spending := func() (row string) {
		for line := range strings.Lines(w.ok("usage")) {
			if strings.HasPrefix(line, "a ") {
				row += line
			}
		}
		return row
	}
	fires, spent := strings.Count(w.ok("replies"), "Look at"), spending()
	w.ok("restore", "b.db")
	if now := spending(); now != spent || spent == "" {
		t.Errorf("spent is\n%s\nand was\n%s", now, spent)
	}
	r = w.background()
	w.put("agents/a/in/three", "x") // it is found, and waits: the day's budget is spent
	until(t, "the budget is spent", func() bool { return strings.Contains(w.ok("status"), "budget for the day is spent") })
	until(t, "the new file is queued", func() bool { return strings.Contains(w.ok("inbox"), "in/three") })
	if in := w.ok("inbox"); strings.Count(in, "Look at") != queued+1 || strings.Count(w.ok("replies"), "Look at") != fires {
		t.Errorf("it has fired again:\n%s%s", in, w.ok("replies"))
	}
	r.stop()
}

// TestTheWayBack: the files are those that the fleet goes on with, by the commands that are
// named, and once more when it comes forward again.
func TestTheWayBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	w.done("send", "triage", "hello")
	w.done("run", "--once")
	w.done("pause", "triage")
	if o := w.run("backup", "x.db", "--as-files", "files"); o.status != exitUsage {
		t.Errorf("a file and a folder: %+v", o)
	}
	out := w.done("backup", "--as-files", "files")
	if o := w.run("backup", "--as-files", "files"); o.status != exitError || !strings.Contains(o.stderr, "exists") {
		t.Errorf("into what exists: %+v", o)
	}
	events := w.done("events")
	_, commands, _ := strings.Cut(out, "    heartbeat stop\n")
	w.shell(commands)
	for _, name := range []string{"paused.json", "identities.json", "journal.jsonl", "usage/triage.jsonl"} {
		if w.get("state/fleet/"+name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if left := w.names("state/fleet"); slices.Contains(left, "heartbeat.db") || slices.Contains(left, "before-store") {
		t.Errorf("left: %v", left)
	}
	w.run("run", "--once") // forward again; the agent is paused
	if out := w.done("status"); !strings.Contains(out, "paused by a person") {
		t.Errorf("status:\n%s", out)
	}
	if now := w.done("events"); !strings.HasPrefix(now, events) || !strings.Contains(events, "session") {
		t.Errorf("events:\n%s\nbefore:\n%s", now, events)
	}
}
