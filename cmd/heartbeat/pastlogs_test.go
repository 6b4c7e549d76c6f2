package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook"
)

// TestLogsOfAPastSession (found by a user: history listed ids that logs could
// not be given).
func TestLogsOfAPastSession(t *testing.T) {
	t.Parallel()
	logsOfAPastSession(t, simulated)
}

// TestLogsOfAClientWhoseHomeLiesInItsDirectory (found by a user: logs said of
// each agent of the quick start that its session has said nothing yet).
func TestLogsOfAClientWhoseHomeLiesInItsDirectory(t *testing.T) {
	t.Parallel()
	config := strings.Replace(simulated, "simulate]", "simulate, --home, .home]", 1)
	if config == simulated {
		t.Fatal("the stand-in has another command line")
	}
	logsOfAPastSession(t, config)
}

// TestLogsOfAClientWhoseHomeLiesElsewhere: the declared command says where.
func TestLogsOfAClientWhoseHomeLiesElsewhere(t *testing.T) {
	t.Parallel()
	logsOfAPastSession(t, strings.Replace(simulated, "simulate]", "simulate, --home, "+t.TempDir()+"]", 1))
}

func logsOfAPastSession(t *testing.T, config string) {
	t.Helper()
	w := newWorld(t)
	w.put("heartbeat.yaml", config)
	w.put("agents/triage/README", "")
	for _, prompt := range []string{"the first one", "the second one"} {
		w.ok("send", "triage", prompt)
		if o := w.run("run", "--once"); o.status != 0 {
			t.Fatalf("%+v", o)
		}
	}
	var past struct{ Events []struct{ ID string } }
	w.into(&past, "history")
	if len(past.Events) != 2 || past.Events[0].ID == past.Events[1].ID {
		t.Fatalf("history: %+v", past)
	}
	for i, want := range []string{"the first one", "the second one"} {
		id, _, _ := strings.Cut(past.Events[i].ID, "-")
		for _, args := range [][]string{{"logs", "triage", id}, {"logs", "triage", past.Events[i].ID, "--raw"}} {
			out := w.ok(args...)
			if !strings.Contains(out, want) || strings.Count(out, "> the ") > 1 {
				t.Errorf("%q: %s", args, out)
			}
		}
	}
	for id, why := range map[string]string{"nothing": "the journal knows none", "../../x": "the journal knows none"} {
		if o := w.run("logs", "triage", id); o.status != exitError || !strings.Contains(o.stderr, why) || !strings.Contains(o.stderr, "heartbeat history triage") {
			t.Errorf("%s: %+v", id, o)
		}
	}
	if o := w.run("logs", "triage", past.Events[0].ID, "-f"); o.status != exitUsage {
		t.Errorf("-f: %+v", o)
	}
}

// TestLogsBeforeTheClientHasWrittenAny: in a session's first moments it was an
// error of a file that nobody had heard of.
func TestLogsBeforeTheClientHasWrittenAny(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	w.ok("send", "triage", "anything")
	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	r, err := hook.ReadRecord(filepath.Join(w.dir, "agents/triage/.heartbeat"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.Transcript); err != nil {
		t.Fatal(err)
	}
	o := w.run("logs", "triage")
	if o.status != exitError || !strings.Contains(o.stderr, "has said nothing yet") || !strings.Contains(o.stderr, "heartbeat logs triage -f") {
		t.Errorf("%+v", o)
	}
}

// TestHelpForAReaderThatLeaves (found by a user: `heartbeat init --help | head`
// ended with "cannot parse the command line: broken pipe").
func TestHelpForAReaderThatLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"init", "--help"}, {}, {"version"}, {"schema"}} {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := w.command(args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = out, &stderr
		if err := cmd.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("%q: %v: %s", args, err, stderr.String())
		}
		out.Close()
	}
}

// TestLogsSinceATimeAreOfAllSessions: --since showed the last session alone, and where
// that had crashed before it said anything, nothing.
func TestLogsSinceATimeAreOfAllSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", `version: 1
name: fleet
agents:
  triage: {dir: agents/triage, command: [heartbeat, simulate]}
  builder: {dir: agents/builder, command: [heartbeat, simulate]}
`)
	w.ok("apply")
	for _, prompt := range []string{"the first one", "the second one"} {
		for _, agent := range []string{"triage", "builder"} {
			w.ok("send", agent, prompt)
		}
		if o := w.run("run", "--once"); o.status != 0 {
			t.Fatalf("%+v", o)
		}
	}
	for _, args := range [][]string{{"logs", "--since", "1h"}, {"logs", "triage", "--since", "1h"}} {
		out := w.ok(args...)
		first, second := strings.Index(out, "> the first one"), strings.Index(out, "> the second one")
		if first < 0 || second < first {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	last := removeTranscript(w, "triage")
	for _, args := range [][]string{{"logs", "--since", "1h"}, {"logs", "triage", "--since", "1h"}, {"logs"}} {
		o := w.run(args...)
		if want := "session " + last + ` of agent "triage" has said nothing, or its transcript is gone: heartbeat logs triage ` + last + " --raw"; o.status != 0 || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %+v", args, o)
		}
		if strings.Contains(o.stdout, "> the first one") != (len(args) > 1) {
			t.Errorf("%q:\n%s", args, o.stdout)
		}
	}
}

// removeTranscript removes what the last session of an agent has said, and returns the
// id of the session as history shows it.
func removeTranscript(w *world, agent string) string {
	w.t.Helper()
	r, err := hook.ReadRecord(filepath.Join(w.dir, "agents", agent, ".heartbeat"))
	if err == nil {
		err = os.Remove(r.Transcript)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	id, _, _ := strings.Cut(r.Session, "-")
	return id
}
