package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, dir
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// verbs records the steps of do.
func verbs(f *Folder, do func() error) ([]Verb, error) {
	var steps []Verb
	f.Guard = func(s Step, run func() error) error {
		steps = append(steps, s.Verb)
		return run()
	}
	defer func() { f.Guard = nil }()
	return steps, do()
}

func TestReplaceSyncsFileThenNameThenFolder(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	steps, err := verbs(f, func() error { return f.Replace("a", []byte("new")) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []Verb{Create, Write, Sync, Rename, SyncFolder}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if got := content(t, filepath.Join(dir, "a")); got != "new" {
		t.Errorf("content %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestSwapAndPutLeaveSyncsOut(t *testing.T) {
	t.Parallel()
	f, _ := open(t)
	if steps, err := verbs(f, func() error { return f.Swap("a", []byte("1")) }); err != nil ||
		!slices.Equal(steps, []Verb{Create, Write, Sync, Rename}) {
		t.Errorf("Swap: %v, %v", steps, err)
	}
	if steps, err := verbs(f, func() error { return f.Put("a", []byte("2")) }); err != nil ||
		!slices.Equal(steps, []Verb{Create, Write, Rename}) {
		t.Errorf("Put: %v, %v", steps, err)
	}
}

// Each step fails once without happening and once after it happened: the name
// has the whole old or the whole new content, and no temporary file is left
// that a later Replace would trip over.
func TestAFailedReplaceLeavesOldOrNew(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for n := range 5 {
		for _, happened := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d, happened %v", n, happened), func(t *testing.T) {
				t.Parallel()
				f, dir := open(t)
				if err := f.Replace("a", []byte("old")); err != nil {
					t.Fatal(err)
				}
				at := 0
				f.Guard = func(_ Step, run func() error) error {
					at++
					if at-1 != n {
						return run()
					}
					if happened {
						_ = run()
					}
					return broken
				}
				if err := f.Replace("a", []byte("new")); !errors.Is(err, broken) {
					t.Fatalf("Replace: %v", err)
				}
				f.Guard = nil
				if got := content(t, filepath.Join(dir, "a")); got != "old" && got != "new" {
					t.Errorf("content %q", got)
				}
				if err := f.Replace("a", []byte("newer")); err != nil {
					t.Fatal(err)
				}
				if got := content(t, filepath.Join(dir, "a")); got != "newer" {
					t.Errorf("content %q after all went well", got)
				}
			})
		}
	}
}

func TestAppendRepairsATornLastLine(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("whole\n{\"to"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"one\n", "two\n"} {
		if err := f.Append("log", []byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := content(t, path), "whole\n{\"to\none\ntwo\n"; got != want {
		t.Errorf("content %q, want %q", got, want)
	}
}

func TestAppendSyncsTheFolderOfANewFileOnly(t *testing.T) {
	t.Parallel()
	f, _ := open(t)
	steps, err := verbs(f, func() error { return f.Append("log", []byte("one\n")) })
	if err != nil || !slices.Equal(steps, []Verb{Create, Write, Sync, SyncFolder}) {
		t.Errorf("new: %v, %v", steps, err)
	}
	steps, err = verbs(f, func() error { return f.Append("log", []byte("two\n")) })
	if err != nil || !slices.Equal(steps, []Verb{Write, Sync}) {
		t.Errorf("old: %v, %v", steps, err)
	}
}

// The reference wrote through a link that the agent had put at the name of
// its temporary file.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "inside"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": victim, "in": "inside", "dangling": victim + "-not"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(name, 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read %s: %v, want ErrNotRegular", name, err)
		}
		if err := f.Append(name, []byte("x\n")); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Append %s: %v, want ErrNotRegular", name, err)
		}
		if err := f.Replace(name, []byte("new")); err != nil {
			t.Errorf("Replace %s: %v", name, err)
		}
	}
	if got := content(t, victim); got != "precious" {
		t.Errorf("the victim holds %q", got)
	}
	if got := content(t, filepath.Join(dir, "inside")); got != "mine" {
		t.Errorf("the other file holds %q", got)
	}
	if _, err := os.Lstat(victim + "-not"); err == nil {
		t.Error("a dangling link's target was made")
	}
}

func TestWhatIsNoFileIsRefusedWithoutWaiting(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fifo", "folder"} {
		if _, err := f.Read(name, 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read %s: %v", name, err)
		}
		if err := f.Append(name, []byte("x\n")); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Append %s: %v", name, err)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read("a", 5); err != nil || string(data) != "12345" {
		t.Errorf("Read: %q, %v", data, err)
	}
	if _, err := f.Read("a", 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Read over the limit: %v", err)
	}
	if _, err := f.Read("missing", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of a missing file: %v", err)
	}
}

// TestASweepFailsNoWrite: `send` failed where `run` tidied the same new folder up.
func TestASweepFailsNoWrite(t *testing.T) {
	t.Parallel()
	writes := map[string]func(f *Folder) error{
		"Replace":   func(f *Folder) error { return f.Replace("a", []byte("new")) },
		"ReplaceAs": func(f *Folder) error { return f.ReplaceAs("a", []byte("new"), 0o644) },
		"Swap":      func(f *Folder) error { return f.Swap("a", []byte("new")) },
		"Put":       func(f *Folder) error { return f.Put("a", []byte("new")) },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := open(t)
			swept := 0
			f.Guard = func(s Step, run func() error) error {
				if s.Verb == Rename && swept < sweeps {
					swept++
					if err := f.SweepOf("a"); err != nil {
						t.Error(err)
					}
				}
				return run()
			}
			if err := write(f); err != nil {
				t.Errorf("swept %d times: %v", swept, err)
			}
			data, err := f.Read("a", 10)
			if names, _ := f.Entries(); string(data) != "new" || err != nil || len(names) != 1 || swept != sweeps {
				t.Errorf("it has %q, %v; the folder %v; swept %d times", data, err, names, swept)
			}
		})
	}
}

func TestSweepRemovesOldTemporaryFilesOnly(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{tempName(".in-flight"), tempName("outbox.jsonl"), "inbox.jsonl", ".in-flight.tmp-xyz", ".tmp-0011223344556677"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	young := tempName("young")
	if err := os.WriteFile(filepath.Join(dir, young), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Sweep(time.Hour); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{".in-flight.tmp-xyz", ".tmp-0011223344556677", young, "inbox.jsonl"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

func TestTheTailOverlapsInItsPieces(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	needle := "needle-in-the-hay"
	find := func(name string, window int64) (found bool, err error) {
		err = f.Tail(name, window, len(needle)-1, func(piece []byte) bool {
			found = bytes.Contains(piece, []byte(needle))
			return !found
		})
		return found, err
	}
	for _, before := range []int{0, 64<<10 - 8, 64<<10 + 5, 200_000} {
		data := strings.Repeat("x", before) + needle + strings.Repeat("y", 100_000)
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := find("a", 1<<20); err != nil || !found {
			t.Errorf("behind %d bytes: %v, %v", before, found, err)
		}
		if found, err := find("a", 100_000); err != nil || found {
			t.Errorf("behind %d bytes, outside the window: %v, %v", before, found, err)
		}
	}
	if found, err := find("missing", 10); err != nil || found {
		t.Errorf("missing: %v, %v", found, err)
	}
}

func TestPathFunctions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	if err := Replace(path, []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 100); err != nil || string(data) != "one\n" {
		t.Errorf("%q, %v", data, err)
	}
	if err := Put(path, []byte("three")); err != nil || content(t, path) != "three" {
		t.Errorf("Put: %v", err)
	}
	if err := Replace(filepath.Join(path, "not", "there"), nil); err == nil {
		t.Error("a missing folder is no error")
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	long := strings.Repeat("x", 100_000)
	for data, want := range map[string]string{
		"":                    "",
		"\n":                  "",
		"one\n":               "one",
		"one\ntwo\n":          "two",
		"one\ntorn":           "",
		long + "\n":           long,
		"one\n" + long + "\n": long,
		long + "\ntwo\n":      "two",
	} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.LastLine("a", 1<<20); err != nil || string(got) != want {
			t.Errorf("of %.20q: %.20q, %v, want %.20q", data, got, err, want)
		}
	}
	if got, err := f.LastLine("a", 10); err != nil || got != nil && len(got) > 64<<10 {
		t.Errorf("over the limit: %d bytes, %v", len(got), err)
	}
	if got, err := f.LastLine("missing", 10); err != nil || got != nil {
		t.Errorf("missing: %q, %v", got, err)
	}
}

// TestWhatSomebodyElseHasChangedIsNotReplaced: shorter, longer or other than was read; and what is
// replaced keeps its permissions.
func TestWhatSomebodyElseHasChangedIsNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	for _, now := range []string{"", "befor", "beforE", "before and more"} {
		if err := os.WriteFile(path, []byte(now), 0o640); err != nil {
			t.Fatal(err)
		}
		err := ReplaceIf(path, []byte("before"), []byte("after"))
		if _, changed := errors.AsType[*ChangedError](err); !changed {
			t.Errorf("%q: %v", now, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != now {
			t.Errorf("it is %q, %v; was %q", text, err, now)
		}
	}
	if err := errors.Join(os.WriteFile(path, []byte("before"), 0o640), ReplaceIf(path, []byte("before"), []byte("after"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(text) != "after" || info.Mode().Perm() != 0o640 {
		t.Errorf("it is %q, %v, %v", text, info.Mode(), err)
	}
}
