package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRecall: what was read is enough to know the whole fleet again.
func TestRecall(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml":    "version: 1\ninclude: [one.yaml, 'teams/**/*.yaml']\nagents: {own: {dir: own}}\n",
		"one.yaml":          "agents: {one: {dir: one, trigger: {cron: '@daily', prompt-file: p.txt}}}\n",
		"p.txt":             "from a file\n",
		"teams/deep/x.yaml": "agents: {x: {dir: x}}\n",
		"teams/y.yaml":      "agents: {y: {dir: y}}\n",
	})
	f := mustLoad(t, path)
	for _, text := range f.Texts {
		if err := os.Remove(text.Path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "p.txt")); err == nil {
		t.Error("the prompt's file is none of the texts")
	}
	again, err := Recall(f.Texts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again, cmpopts.IgnoreUnexported(Fleet{}), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-loaded +recalled):\n%s", diff)
	}
	if _, err := Recall(nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing kept: %v", err)
	}
}

// An agent that put a link in place of its directory led every command to where
// the link goes, or, where that is another agent's, kept the whole fleet from
// being loaded.
func TestADirectoryThatWasAFolderIsNotFollowed(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": "version: 1\nagents: {one: {dir: one}, two: {dir: two}, three: {dir: three}}\n",
		"one/x":          "", "two/x": "", "real/x": "",
	})
	base := filepath.Dir(path)
	if err := os.Symlink("real", filepath.Join(base, "three")); err != nil {
		t.Fatal(err)
	}
	before := mustLoad(t, path)
	one := before.Agent("one").Dir
	if want := (Folders{one: one, before.Agent("two").Dir: before.Agent("two").Dir}); !maps.Equal(before.Folders, want) {
		t.Errorf("folders %v, want %v", before.Folders, want)
	}
	for name, put := range map[string]func(dir string) error{
		"a link to another agent's": func(dir string) error { return os.Symlink("two", dir) },
		"a link to nowhere":         func(dir string) error { return os.Symlink("nowhere", dir) },
		"a link to a file":          func(dir string) error { return os.Symlink("two/x", dir) },
		"a link to itself":          func(dir string) error { return os.Symlink("one", dir) },
		"a FIFO":                    func(dir string) error { return syscall.Mkfifo(dir, 0o600) },
		"a file":                    func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		if err := os.RemoveAll(one); err != nil {
			t.Fatal(err)
		}
		if err := put(one); err != nil {
			t.Fatal(err)
		}
		known := func() Folders { return before.Folders }
		f, _, err := LoadInputs(path, known)
		recalled, recallErr := Recall(before.Texts, before.Folders)
		if err != nil || recallErr != nil {
			t.Errorf("%s: %v, %v", name, err, recallErr)
			continue
		}
		for _, f := range []*Fleet{f, recalled} {
			if f.Agent("one").Dir != one || f.Agent("three").Dir != before.Agent("three").Dir || !maps.Equal(f.Folders, before.Folders) {
				t.Errorf("%s: %s, folders %v", name, f.Agent("one").Dir, f.Folders)
			}
			if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, "is not a folder any more") {
				t.Errorf("%s: warnings %v", name, f.Warnings)
			}
		}
		// What was never known is the file's problem, or the person's wish; but a FIFO
		// is nobody's wish, and one agent's trouble alone.
		unknown, err := Load(path)
		if name == "a FIFO" {
			if err != nil || len(unknown.Warnings) != 1 || !strings.Contains(unknown.Warnings[0].Message, "is not a folder but a FIFO") {
				t.Errorf("%s: %v, %+v", name, err, unknown)
			}
		} else if err == nil {
			t.Errorf("%s: it loads where nothing is known of it", name)
		}
	}
}
