package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
)

// client gives the bench a client that has been started once.
func (b *bench) client(text string) (file string) {
	b.t.Helper()
	file = filepath.Join(b.agent.Env["CLAUDE_CONFIG_DIR"], ".claude.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		b.t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTrust(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const before = `{"theme":"dark","projects":{}}`
	file := b.client(before)
	want := `{"theme":"dark","projects":{"` + b.agent.Dir + `":{"hasTrustDialogAccepted":true}}}`
	if item, err := Trust(b.agent, true); err != nil || item.Change != Changed || item.Path != file || read(t, file) != before {
		t.Fatalf("dry run: %v, %v", item, err)
	}
	for _, change := range []Change{Changed, Unchanged} {
		item, err := Trust(b.agent, false)
		if err != nil || item.Change != change || read(t, file) != want {
			t.Fatalf("%v, %v: %s", item, err, read(t, file))
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestTrustThroughALink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.client("")
	real := filepath.Join(filepath.Dir(b.agent.Dir), "dotfile.json")
	for _, err := range []error{os.WriteFile(real, []byte("{}"), 0o600), os.Remove(file), os.Symlink(real, file)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Trust(b.agent, false); err != nil || !strings.Contains(read(t, real), "hasTrustDialogAccepted") {
		t.Errorf("%v: %s", err, read(t, real))
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

func TestTrustRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := Trust(b.agent, false)
	if never, ok := errors.AsType[*NeverStartedError](err); !ok || never.Hint() == "" {
		t.Errorf("without the client's folder: %v", err)
	}
	file := b.client("")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*NeverStartedError](errOf(Trust(b.agent, false))); !ok {
		t.Error("without the client's file it is made")
	}
	b.client(`{"projects": 5}`)
	if err := errOf(Trust(b.agent, false)); err == nil || !strings.Contains(err.Error(), "1:14: projects: must be an object") {
		t.Errorf("a broken file: %v", err)
	}
	if read(t, file) != `{"projects": 5}` {
		t.Error("the broken file was changed")
	}
	home := *b.agent
	home.Env = map[string]string{"HOME": b.agent.Dir, "CLAUDE_CONFIG_DIR": filepath.Dir(file)}
	b.put("x", "")
	if err := errOf(Trust(&home, false)); err == nil || !strings.Contains(err.Error(), "home folder") {
		t.Errorf("the home folder: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func errOf(_ Item, err error) error { return err }

// TestTrustTakesTurns with others that hold the client's lock, and takes the
// lock of one that is dead.
func TestTrustTakesTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.client("{}")
	lock := file + ".lock"
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			a := &config.Agent{Name: "x", Dir: filepath.Join(b.agent.Dir, string(rune('a'+i))), Env: b.agent.Env}
			if _, err := Trust(a, false); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := strings.Count(read(t, file), "hasTrustDialogAccepted"); n != 10 {
		t.Errorf("%d of 10 are trusted: %s", n, read(t, file))
	}
}

// TestTrustOfTheStandInWithAHomeOfItsOwn: the advice of the workspace that is not trusted
// failed there, as the file of the person's own home was looked for.
func TestTrustOfTheStandInWithAHomeOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	home := filepath.Join(t.TempDir(), "a", "home")
	b.agent.Self, b.agent.Command = true, []string{"heartbeat", "simulate", "--home", home}
	file := filepath.Join(home, ".claude.json")
	if item, err := Trust(b.agent, true); err != nil || item.Change != Created || item.Path != file {
		t.Errorf("dry run: %+v, %v", item, err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("dry run made it: %v", err)
	}
	for _, change := range []Change{Created, Unchanged} {
		item, err := Trust(b.agent, false)
		if err != nil || item.Change != change || !strings.Contains(read(t, file), `"`+b.agent.Dir+`"`) {
			t.Errorf("%+v, %v", item, err)
		}
	}
}
