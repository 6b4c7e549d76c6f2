package ptyrun

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

func folder(t *testing.T, dir string) *durable.Folder {
	t.Helper()
	f, err := durable.MakeBelow(filepath.Dir(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	log, err := NewLog(folder(t, dir), "one", 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "one.log")} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	var all bytes.Buffer
	for i := range 200 {
		line := fmt.Appendf(nil, "line %d\n", i)
		all.Write(line)
		if n, err := log.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := log.Write(make([]byte, 5000)); n != 5000 || err != nil {
		t.Fatal(n, err)
	}
	all.Write(make([]byte, 5000))
	if n, err := log.Missing(); n != 0 || err != nil {
		t.Error(n, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(filepath.Join(dir, "one.log.1"))
	if err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(filepath.Join(dir, "one.log"))
	if err != nil {
		t.Fatal(err)
	}
	both := slices.Concat(older, newer)
	if len(both) > 1000 || len(both) < 500 || !bytes.HasSuffix(all.Bytes(), both) {
		t.Errorf("%d and %d bytes are not the end of the output", len(older), len(newer))
	}
}

func TestLogKeepsTheNewest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 6 {
		name := filepath.Join(dir, fmt.Sprintf("s%d.log", i))
		for _, n := range []string{name, name + ".1"} {
			if err := os.WriteFile(n, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := NewLog(folder(t, dir), "new", 1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "new.log notes.txt s4.log s4.log.1 s5.log s5.log.1" {
		t.Errorf("left are %s", got)
	}
}

// What cannot be written is dropped, counted and noted, and never an error:
// the terminal has to be drained.
func TestLogOnABrokenDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := NewLog(folder(t, dir), "one", 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	good := log.file
	log.file = full
	if n, err := log.Write([]byte("lost")); n != 4 || err != nil {
		t.Error(n, err)
	}
	if n, err := log.Missing(); n != 4 || err == nil {
		t.Error(n, err)
	}
	_ = full.Close()
	log.file = good
	if n, err := log.Write([]byte("kept")); n != 4 || err != nil {
		t.Error(n, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "one.log"))
	if err != nil || !bytes.Contains(data, []byte("4 bytes of output could not be logged")) || !bytes.HasSuffix(data, []byte("kept")) {
		t.Errorf("the log is %q, %v", data, err)
	}
	if n, _ := log.Missing(); n != 0 {
		t.Errorf("%d bytes are still missing", n)
	}
}

// A hostile directory leads the log nowhere, and does not make it wait.
func TestLogTrustsNothing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	victim := t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "sessions")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(filepath.Join(victim, "file"), filepath.Join(dir, "link.log")),
		syscall.Mkfifo(filepath.Join(dir, "fifo.log"), 0o600),
		os.Mkdir(filepath.Join(dir, "dir.log"), 0o700),
		os.Symlink(victim, filepath.Join(home, "elsewhere")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "fifo", "dir", "", "..", "a/b", "../x"} {
		if log, err := NewLog(folder(t, dir), name, 1000, 0); err == nil {
			_ = log.Close()
			t.Errorf("a log %q was opened", name)
		}
	}
	if f, err := durable.MakeBelow(home, filepath.Join(home, "elsewhere")); err == nil {
		_ = f.Close()
		t.Error("a link to a directory elsewhere was followed")
	}
	data, err := os.ReadFile(filepath.Join(victim, "file"))
	if err != nil || string(data) != "precious" {
		t.Errorf("the other file is now %q, %v", data, err)
	}
}
