package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAReloadThatFailsIsCounted (only SIGHUP's was): whatever is wrong with the
// file, `heartbeat reload` says so, and the metric that one is woken by, too.
func TestAReloadThatFailsIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := strings.Replace(simulated, "agents:\n", "include: [more.yaml]\nagents:\n", 1)
	files := map[string]string{
		"heartbeat.yaml": good, "p.txt": "look around",
		"more.yaml": "agents: {builder: {dir: agents/builder, command: [heartbeat, simulate], trigger: {cron: '@yearly', prompt-file: p.txt}}}\n",
	}
	mend := func() {
		for name, text := range files {
			w.put(name, text)
		}
	}
	mend()
	r := w.background("--metrics", ":0")
	metric := func() string {
		t.Helper()
		res, err := http.Get(servedAt.FindString(r.stderr.String()))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(string(body), "\nheartbeat_config_last_reload_successful ")
		return value[:1]
	}
	for name, broken := range map[string]struct {
		breaks func()
		status int
		says   string
	}{
		"no YAML":         {func() { w.put("heartbeat.yaml", "agents: [") }, exitConfig, "heartbeat.yaml:1:"},
		"an unknown key":  {func() { w.put("heartbeat.yaml", good+"colour: red\n") }, exitConfig, "unknown key"},
		"an empty file":   {func() { w.put("heartbeat.yaml", "") }, exitConfig, "the file is empty"},
		"no file":         {func() { remove(t, w, "heartbeat.yaml") }, exitConfig, "no such file"},
		"a folder":        {func() { remove(t, w, "heartbeat.yaml"); w.put("heartbeat.yaml/x", "") }, exitConfig, "is a directory"},
		"no include":      {func() { remove(t, w, "more.yaml") }, exitConfig, "more.yaml"},
		"a wrong include": {func() { w.put("more.yaml", "agents: {builder: {}}") }, exitConfig, "more.yaml:1:"},
		"no prompt-file":  {func() { remove(t, w, "p.txt") }, exitConfig, "p.txt"},
		"another name": {
			func() { w.put("heartbeat.yaml", strings.Replace(good, "name: fleet", "name: troop", 1)) }, exitError, `the fleet's name changed from "fleet" to "troop"`,
		},
	} {
		broken.breaks()
		if o := w.run("reload"); o.status != broken.status || !strings.Contains(o.stderr, broken.says) || o.stdout != "" {
			t.Errorf("%s: %+v", name, o)
		}
		if metric() != "0" {
			t.Errorf("%s: the metric says that the last reload succeeded", name)
		}
		if e := envelopeOf(t, w.run("reload", "-o", "json")); *e.Error.Code == "" {
			t.Errorf("%s: with JSON: %+v", name, e)
		}
		remove(t, w, "heartbeat.yaml")
		mend()
		if out := w.ok("reload"); !strings.Contains(out, "nothing changed") || metric() != "1" {
			t.Errorf("%s, mended: %s", name, out)
		}
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func remove(t *testing.T, w *world, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestWatchConfigSeesWhatTheFleetIsMadeOf: new files of an include's glob, and
// prompt-files, were not seen, nor what mends a file that is broken.
func TestWatchConfigSeesWhatTheFleetIsMadeOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(simulated, "agents:\n", "include: ['teams/*.yaml']\nagents:\n", 1))
	w.put("p.txt", "look around")
	w.put("teams/a.yaml", "agents: {a: {dir: a, command: [heartbeat, simulate], trigger: {cron: '@yearly', prompt-file: ../p.txt}}}\n")
	r := w.background("--watch-config")
	for _, step := range []struct {
		does func()
		says string
	}{
		{func() { w.put("teams/b.yaml", "agents: {b: {dir: ../b, command: [heartbeat, simulate]}}\n") }, "reloaded\n    added: b; unchanged: 2"},
		{func() { w.put("p.txt", "look again") }, "reloaded\n    changed: a; unchanged: 2"},
		{func() { remove(t, w, "p.txt") }, "reload-failed"},
		{func() { w.put("p.txt", "look everywhere") }, "reloaded\n    changed: a; unchanged: 2"},
		{func() {
			w.put("teams/b.yaml", "agents: {b: {dir: ../b, command: [heartbeat, simulate], timeout: 5}}\n")
		}, "reload-failed"},
		{func() { remove(t, w, "teams/b.yaml") }, "reloaded\n    removed: b; unchanged: 2"},
	} {
		before := w.run("events").stdout
		step.does()
		until(t, step.says, func() bool {
			after := w.run("events").stdout
			return strings.Count(after, step.says) > strings.Count(before, step.says)
		})
	}
	r.stop()
}

// TestARunIsReachedByTheNameItBeganWith: as soon as another name: stood in its
// file, status said that nothing runs, and pause and trigger reached nobody.
func TestARunIsReachedByTheNameItBeganWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	for _, name := range []string{"troop", "crew"} {
		w.put("heartbeat.yaml", strings.Replace(simulated, "name: fleet", "name: "+name, 1))
		if pid := w.fleet().Scheduler.PID; pid != r.cmd.Process.Pid {
			t.Errorf("%s: status tells of %d, %d runs", name, pid, r.cmd.Process.Pid)
		}
		for _, command := range []string{"pause triage", "resume triage", "trigger triage"} {
			if o := w.run(strings.Fields(command)...); o.status != 0 {
				t.Errorf("%s, %s: %+v", name, command, o)
			}
		}
		if o := w.run("reload"); o.status != exitError || !strings.Contains(o.stderr, "which takes a new run") {
			t.Errorf("%s, reload: %+v", name, o)
		}
		if o := w.run("apply"); o.status != 0 {
			t.Errorf("%s, apply: %+v", name, o)
		}
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if o := w.run("trigger", "triage"); o.status != exitNotRunning {
		t.Errorf("when it has ended: %+v", o)
	}
}

// A FIFO where a new agent is to live refused the whole reload.
func TestAReloadWithAFIFOInPlaceOfADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	pipe := filepath.Join(w.dir, "agents/pipe")
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o755), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.put("heartbeat.yaml", simulated+"  pipe: {dir: agents/pipe, command: [heartbeat, simulate]}\n  builder: {dir: agents/builder, command: [heartbeat, simulate]}\n")
	if out := w.done("reload"); !strings.Contains(out, "builder") {
		t.Fatalf("reload: %s", out)
	}
	w.done("send", "builder", "hello", "--wait")
	if o := w.run("status", "pipe"); !strings.Contains(o.stdout+o.stderr, "not a folder") && !strings.Contains(o.stdout, "not a directory") {
		t.Errorf("status: %s%s", o.stdout, o.stderr)
	}
	if err := errors.Join(os.Remove(pipe), os.Mkdir(pipe, 0o755)); err != nil {
		t.Fatal(err)
	}
	w.done("send", "pipe", "hello", "--wait")
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestAMendedFileIsNotYetWhatRuns: who had corrected the file and resumed the agent
// was told that it goes on, and it went on as before; nothing named reload.
func TestAMendedFileIsNotYetWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "    dir:", "    command: [gone]\n    dir:", 1))
	w.run("apply")
	r := w.background()
	until(t, "it is held", func() bool { return w.agent("triage").State == "held" })
	quiet := func(when string) {
		t.Helper()
		if out := w.ok("status"); strings.Contains(out, "reload") {
			t.Errorf("%s:\n%s", when, out)
		}
	}
	quiet("nothing has changed")
	w.put("heartbeat.yaml", "# a remark\n"+w.get("heartbeat.yaml"))
	quiet("nothing that matters has changed")
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "    dir:", "    command: [heartbeat, simulate]\n    dir:", 1))
	const changed, do = "the file has changed since it was loaded (changed: triage; unchanged: 0): ", "heartbeat reload\n"
	if out := w.ok("status"); !strings.Contains(out, "\n"+changed+do) {
		t.Errorf("status:\n%s", out)
	}
	for _, args := range [][]string{{"resume", "triage"}, {"restart", "triage"}} {
		if o := w.run(args...); o.status != 0 || !strings.Contains(o.stderr, "warning: "+changed+do) {
			t.Errorf("%q: %+v", args, o)
		}
	}
	w.put("heartbeat.yaml", "version: 1\nagents: [")
	if o := w.run("status"); !strings.Contains(o.stdout, "the file has changed since it was loaded (cannot use ") || strings.Contains(o.stdout, " reload\n") {
		t.Errorf("a file with problems: %+v", o)
	}
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "    dir:", "    command: [heartbeat, simulate]\n    dir:", 1))
	w.ok("reload")
	quiet("it was loaded")
	until(t, "it works", func() bool { return w.agent("triage").State == "idle" })
	r.stop()
}
