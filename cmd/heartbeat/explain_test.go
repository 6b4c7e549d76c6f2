package main

import (
	"strings"
	"testing"

	"heartbeat/orchestrator/explain"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.ok("explain", "held")
	if !strings.HasPrefix(out, "held (state, trouble, doctor)\n\nNothing is started for the agent") || !strings.Contains(out, "\ndo    heartbeat doctor AGENT") {
		t.Errorf("explain held:\n%s", out)
	}
	for _, word := range explain.Words() {
		var p page
		explained{word}.text(&p)
		for line := range strings.Lines(p.buf.String()) {
			if width(line) > pageColumns+1 {
				t.Errorf("%s: a line is too long: %s", word.Word, line)
			}
		}
	}
	if list := w.ok("explain"); strings.Count(list, "\n") < 100 || !strings.Contains(list, "\npoison ") {
		t.Errorf("explain:\n%s", list)
	}
	if o := w.run("explain", "heled"); o.status != exitUsage || !strings.Contains(o.stderr, "hint: did you mean held") {
		t.Errorf("%+v", o)
	}
	var data struct{ Word, Means, Then, Do string }
	if w.into(&data, "explain", "poison"); data.Word != "poison" || data.Do == "" {
		t.Errorf("as JSON: %+v", data)
	}
	if out := w.ok("explain", "api-failure (authentication_failed)"); !strings.HasPrefix(out, "api-failure (end)") ||
		!strings.Contains(out, "\n\nauthentication_failed (API failure)") || !strings.Contains(out, "/login") {
		t.Errorf("words as status shows them:\n%s", out)
	}
	if out := w.ok("explain", "(authentication_failed)"); !strings.HasPrefix(out, "authentication_failed (") {
		t.Errorf("a word in brackets:\n%s", out)
	}
	if out := w.ok("__complete", "explain", "pois"); !strings.HasPrefix(out, "poison\t") {
		t.Errorf("TAB offers %q", out)
	}
	for _, code := range codes {
		if w, there := explain.Find(code); !there || !strings.HasPrefix(w.Of[len(w.Of)-1], "exit") {
			t.Errorf("exit code %q is not explained", code)
		}
	}
}

// Who types what other programs call it is told what it is called here.
func TestOtherProgramsCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for command, hint := range map[string]string{
		"ps": "heartbeat status", "ls": "heartbeat status", "up": "heartbeat run", "down": "heartbeat stop", "outbox": "heartbeat replies",
		"qwertz": "heartbeat --help",
	} {
		o := w.run(command)
		if o.status != exitUsage || o.stdout != "" || !strings.Contains(o.stderr, "\nhint: "+hint) {
			t.Errorf("%s: %+v", command, o)
		}
	}
}

// Each command's help fits a terminal of 80 columns and has examples.
func TestTheHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for line := range strings.Lines(w.ok("__complete", "")) {
		command, _, _ := strings.Cut(line, "\t")
		if command == "simulate" {
			continue // the stand-in's own, with scripts on one line
		}
		out := w.ok(command, "--help")
		if !strings.Contains(out, "Examples:\n") {
			t.Errorf("heartbeat %s --help has no examples", command)
		}
		for line := range strings.Lines(out) {
			if width(line) > pageColumns+1 {
				t.Errorf("heartbeat %s --help: %d columns: %s", command, width(line)-1, line)
			}
		}
	}
}
