package clients

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/probe"
)

// binary is a file that is no script.
const binary = "\x7fELF made up"

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestAProgramThatChanges is another one, in whatever way it does; one that was only read
// or called by another name is the same.
func TestAProgramThatChanges(t *testing.T) {
	t.Parallel()
	long := time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC) // as npm sets it
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string)
		same   bool
	}{
		"nothing":            {func(*testing.T, string) {}, true},
		"it is read":         {func(t *testing.T, dir string) { _, _ = os.ReadFile(filepath.Join(dir, "versions/1")) }, true},
		"another link to it": {func(t *testing.T, dir string) { _ = os.Symlink("versions/1", filepath.Join(dir, "other")) }, true},
		"the link leads to another version": {func(t *testing.T, dir string) {
			_ = os.Symlink("versions/2", filepath.Join(dir, "new"))
			_ = os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "claude"))
		}, false},
		"it is replaced by one of the same size and time": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "x"), binary)
			_ = os.Chtimes(filepath.Join(dir, "x"), long, long)
			_ = os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "versions/1"))
		}, false},
		"it is written over in its place": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "versions/1"), "\x7fELF MADE UP")
			_ = os.Chtimes(filepath.Join(dir, "versions/1"), long, long)
		}, false},
		"it is gone": {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "versions/1")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, version := range []string{"versions/1", "versions/2"} {
				put(t, filepath.Join(dir, version), binary)
				if err := os.Chtimes(filepath.Join(dir, version), long, long); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("versions/1", filepath.Join(dir, "claude")); err != nil {
				t.Fatal(err)
			}
			a := &config.Agent{Name: "a", Dir: dir, Command: []string{"claude", "--model", "x"}}
			look := func() Program { return Of(a, []string{"PATH=" + dir}, "/self") }
			before := look()
			if before.Untried != "" || before.ID == "" || before.File != filepath.Join(dir, "versions/1") || len(before.Argv) != 1 {
				t.Fatalf("%+v", before)
			}
			ticks(t)
			tt.change(t, dir)
			if after := look(); (after.ID == before.ID) != tt.same {
				t.Errorf("before %+v\nafter  %+v", before, after)
			}
		})
	}
}

// ticks waits until the file system's clock has gone on.
func ticks(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock")
	var first time.Time
	if !testbed.Await(testbed.Patience, func() bool {
		put(t, path, "x")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = info.ModTime()
		}
		return info.ModTime().After(first)
	}) {
		t.Fatal("the file system's clock stands still")
	}
}

// TestWhatIsNoClient is not tried, with why; agents that share a client have it once.
func TestWhatIsNoClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "claude"), binary)
	put(t, filepath.Join(dir, "script/claude"), "#!/bin/sh\nexec something \"$@\"\n")
	put(t, filepath.Join(dir, "pipe/claude"), "") // an agent may put a FIFO below its directory: none waits for it
	if err := errors.Join(os.Remove(filepath.Join(dir, "pipe/claude")), syscall.Mkfifo(filepath.Join(dir, "pipe/claude"), 0o700)); err != nil {
		t.Fatal(err)
	}
	agent := func(name string, command ...string) *config.Agent {
		return &config.Agent{Name: name, Dir: dir, Command: command, Self: command[0] == "heartbeat"}
	}
	for why, a := range map[string]*config.Agent{
		"/claude is a script, and what it runs is not known":          agent("a", filepath.Join(dir, "script/claude")),
		"npx is not the client itself, and what it runs is not known": agent("a", "npx", "claude"),
		"it is heartbeat itself":                                      agent("a", "heartbeat", "launch"),
		"no such file":                                                agent("a", "else/claude"),
		"pipe/claude: it is not a file":                               agent("a", "pipe/claude"),
	} {
		if p := Of(a, nil, "/self"); p.ID != "" || !strings.Contains(p.Untried, why) {
			t.Errorf("%q: %+v", why, p)
		}
	}
	all := Distinct([]*config.Agent{agent("a", "claude"), agent("b", "npx"), agent("c", filepath.Join(dir, "claude"))}, []string{"PATH=" + dir}, "/self")
	if len(all) != 2 || len(all[0].Agents) != 2 || all[0].Agents[1] != "c" {
		t.Errorf("%+v", all)
	}
}

// TestWhatIsKept: a verdict for all runs of this user, by the program; no verdict is not
// kept, and of many clients the last.
func TestWhatIsKept(t *testing.T) {
	t.Setenv("HEARTBEAT_STATE_DIR", t.TempDir())
	good := probe.Result{Kept: probe.Promises()}
	if err := Keep(Program{ID: "one"}, good); err != nil {
		t.Fatal(err)
	}
	if err := Keep(Program{ID: "two"}, probe.Result{Failure: "it took too long"}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]probe.Verdict{"one": probe.Good, "two": "", "three": "", "": ""} {
		r, err := Recall(Program{ID: id})
		if err != nil || (r == nil) != (want == "") || r != nil && r.Verdict() != want {
			t.Errorf("%q: %+v %v", id, r, err)
		}
	}
	for n := range mostKept {
		if err := Keep(Program{ID: string(rune('a' + n))}, good); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(os.Getenv("HEARTBEAT_STATE_DIR"), ".clients"))
	if err != nil || len(entries) != mostKept {
		t.Errorf("%d are kept: %v", len(entries), err)
	}
	if r, _ := Recall(Program{ID: "one"}); r != nil {
		t.Error("the oldest one is kept")
	}
}

// TestAResultThatCannotBeWritten counts for a while all the same: its client was probed
// again at each start, and no session began while the disk was full.
func TestAResultThatCannotBeWritten(t *testing.T) {
	full := filepath.Join(t.TempDir(), "full")
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEARTBEAT_STATE_DIR", full)
	c, p := New(probe.Prober{}, ""), Program{ID: "one"}
	if !c.known(p).New() {
		t.Fatal("it is known before it was probed")
	}
	if err := c.keep(p, probe.Result{Kept: probe.Promises()}); err == nil {
		t.Fatal("a file took the place of the folder, and there is no error")
	}
	if k := c.known(p); k.New() || k.Result.Verdict() != probe.Good {
		t.Errorf("%+v", k)
	}
}
