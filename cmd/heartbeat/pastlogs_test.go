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
