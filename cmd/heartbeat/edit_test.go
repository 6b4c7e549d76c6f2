package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// editor writes down how it was called, and puts the file edits/N in the place of the
// fleet's file the Nth time.
const editor = `#!/bin/sh
echo "$@" >> calls
n=$(wc -l < calls | tr -d ' ')
[ -e edits/$n ] && cp edits/$n heartbeat.yaml
true
`

// editing is a world with an editor.
func editing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.put("agents/triage/README", "")
	w.put("editor", editor)
	if err := os.Chmod(filepath.Join(w.dir, "editor"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "VISUAL=", "EDITOR="+w.dir+"/editor -w")
	return w
}

// TestEdit opens the file at the agent's line, says what the change means, and has a fleet
// that runs load it after a yes; a file with problems opens again at the first one.
func TestEdit(t *testing.T) {
	t.Parallel()
	w := editing(t)
	w.put("edits/1", strings.Replace(oneAgent, "dir:", "dirr:", 1))
	w.put("edits/2", oneAgent+"    permissions: {allow: [Read]}\n    command: [heartbeat, simulate]\n")
	w.background()
	until(t, "the fleet runs", func() bool { return w.run("status").status == 0 })
	screen := &testbed.Output{}
	child, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{testbed.Program(t, "heartbeat"), "edit", "triage"}, Dir: w.dir, Env: append(w.env, "TERM=xterm", "NO_COLOR=1"), Output: screen,
		Rows: 30, Cols: 100, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer child.End(t.Context())
	for _, question := range []string{"edit it again? [y/N] ", "reload it? [y/N] "} {
		if !testbed.Await(patience, func() bool { return strings.Contains(screen.String(), question) }) {
			t.Fatalf("no %s: %s", question, screen.String())
		}
		if _, err := child.Write([]byte("y\r")); err != nil {
			t.Fatal(err)
		}
	}
	<-child.Done()
	child.End(t.Context())
	file := filepath.Join(w.dir, "heartbeat.yaml")
	if got, want := w.get("calls"), "-w +4 "+file+"\n-w +5 heartbeat.yaml\n"; got != want {
		t.Errorf("the editor was called with\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{"dirr", `+      "Read"`, "changed: triage"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("no %q in\n%s", want, screen.String())
		}
	}
}

// TestEditWithoutATerminal asks nothing and reloads nothing.
func TestEditWithoutATerminal(t *testing.T) {
	t.Parallel()
	w := editing(t)
	if out := w.ok("edit"); !strings.Contains(out, "nothing changed") {
		t.Error(out)
	}
	w.put("edits/2", oneAgent+"    timeout: 5m\n")
	if out := w.ok("edit"); !strings.Contains(out, "heartbeat.yaml is good; heartbeat run starts the fleet") {
		t.Error(out)
	}
	w.put("edits/3", "agents: 7\n")
	if o := w.run("edit", "triage"); o.status != exitConfig || !strings.Contains(o.stderr, "heartbeat.yaml:1:") {
		t.Errorf("%+v", o)
	}
	if o := w.run("edit", "traige"); o.status != exitConfig { // it opens at the problem
		t.Errorf("%+v", o)
	}
	w.env = append(w.env, "EDITOR=no-such-editor")
	if o := w.run("edit"); o.status != exitError || !strings.Contains(o.stderr, "hint: export EDITOR=PROGRAM") {
		t.Errorf("%+v", o)
	}
}

// TestEditWithoutTerminalAndEditor does not start vi, which would wait for good.
func TestEditWithoutTerminalAndEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	if o := w.run("edit"); o.status != exitError || !strings.Contains(o.stderr, "there is no terminal") || !strings.Contains(o.stderr, "hint: export EDITOR=PROGRAM") {
		t.Errorf("%+v", o)
	}
}

func TestHowEditorsOpenALine(t *testing.T) {
	t.Parallel()
	for editor, want := range map[string][]string{
		"vi": {"+7", "f"}, "/usr/bin/nano -l": {"+7", "f"}, "emacsclient -t": {"+7", "f"}, "code -n": {"--wait", "--goto", "f:7"}, "hx": {"f:7"},
	} {
		if got := opening(editor, "f", 7); !slices.Equal(got, want) {
			t.Errorf("%s: %q", editor, got)
		}
	}
}
