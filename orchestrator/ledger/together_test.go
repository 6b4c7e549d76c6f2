package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// TestTextsThatAreRecordedAtOnceShareFiles: 10,000 dead letters that were queued again took
// 10,000 files, and seconds. Each text is found and forgotten by itself.
func TestTextsThatAreRecordedAtOnceShareFiles(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), &config.Agent{Inbox: "/a/inbox.jsonl", Until: config.NewUntil("true")}
	folder := textFolder(dir, a.Inbox)
	name := func(i int) string { return fmt.Sprint("m", i) }
	// What is there before: a text, another text of one of the ids, and damage.
	err := Queued(dir, a, inbox.Letter{ID: name(7), Prompt: "prompt 7"}, inbox.Letter{ID: name(8), Prompt: "another"})
	if err = errors.Join(err, os.WriteFile(filepath.Join(folder, textName(name(9))), []byte(`[{"id"`), 0o600)); err != nil {
		t.Fatal(err)
	}
	const many = 500
	var letters []inbox.Letter
	for i := range many {
		letters = append(letters, inbox.Letter{ID: name(i), Prompt: fmt.Sprint("prompt ", i)})
	}
	letters = append(letters, inbox.Letter{ID: "same", Prompt: "x"}, inbox.Letter{ID: "same", Prompt: "x"}, inbox.Letter{ID: "two", Prompt: "x"}, inbox.Letter{ID: "two", Prompt: "y"},
		inbox.Letter{ID: "large", Prompt: strings.Repeat("x", 2*mostBytesTogether)}, inbox.Letter{ID: "last", Prompt: "x"})
	if err := Queued(dir, a, letters...); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"same": "x", "two": "", name(8): "", "last": "x", "large": strings.Repeat("x", 2*mostBytesTogether)}
	for i := range many {
		if _, other := want[name(i)]; !other {
			want[name(i)] = fmt.Sprint("prompt ", i)
		}
	}
	check := func() {
		t.Helper()
		for id, text := range want {
			got, err := TextOf(dir, a.Inbox, id)
			if err != nil || (got != nil) != (text != "") || got != nil && (got.Text != text || got.ID != id) {
				t.Errorf("%s: %.40v, %v", id, got, err)
			}
		}
		all, err := TextsOf(dir, a.Inbox)
		if err != nil || all.Len() != len(want) {
			t.Errorf("%d are recorded, not %d: %v", all.Len(), len(want), err)
		}
		loaded, err := all.Load()
		if err != nil || len(loaded) != len(want) {
			t.Errorf("%d are read, not %d: %v", len(loaded), len(want), err)
		}
		for _, one := range loaded {
			if text, known := want[one.ID]; !known || text != "" && (one.Text != text || one.Unsure) || text == "" && !one.Unsure {
				t.Errorf("read: %.60v", one)
			}
		}
	}
	check()
	if n := files(t, folder); n > many/mostTogether+10 {
		t.Errorf("%d files for %d texts", n, len(want))
	}
	for i := range many {
		if i%3 > 0 {
			delete(want, name(i))
			if err := DropTexts(dir, a.Inbox, name(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Queued(dir, a, inbox.Letter{ID: name(30), Prompt: "another"}); err != nil { // one of those that share
		t.Fatal(err)
	}
	want[name(30)] = ""
	check()
	for id := range want {
		if err := DropTexts(dir, a.Inbox, id); err != nil {
			t.Fatal(err)
		}
	}
	if n := files(t, folder); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// files counts the files of a folder, each one once whatever its names.
func files(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var known []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(known, func(o fs.FileInfo) bool { return os.SameFile(o, info) }) {
			known = append(known, info)
		}
	}
	return len(known)
}
