package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFileThatChangedTwiceInOneTick, and whatever else a file can look like that
// has changed: only a file that demonstrably has not is the same. Time stands still
// in a bubble, so that now is the present tick however busy the machine is.
func TestAFileThatChangedTwiceInOneTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testAFileThatChanged)
}

func testAFileThatChanged(t *testing.T) {
	now := time.Now().Add(time.Millisecond) // not a whole second
	long := now.Add(-time.Hour)
	for name, tt := range map[string]struct {
		at     time.Time // when the file was changed last before the stamp; zero: it was missing
		change func(path string) error
		same   bool
	}{
		"untouched":                     {long, func(string) error { return nil }, true},
		"untouched, but changed lately": {now, func(string) error { return nil }, false},
		"again in the same tick":        {now, rewrite("two", now), false},
		"again in the same second": {
			now.Truncate(time.Second), rewrite("two", now.Truncate(time.Second)), false,
		},
		"later, and as long": {long, rewrite("two", now), false},
		"longer":             {long, rewrite("longer", long), false},
		"another file in its place, as old and as long": {long, func(path string) error {
			return errors.Join(rewrite("two", long)(path+"2"), os.Rename(path+"2", path))
		}, false},
		"gone":          {long, os.Remove, false},
		"still missing": {time.Time{}, func(string) error { return nil }, true},
		"made":          {time.Time{}, rewrite("one", long), false},
		"of the future, by a clock that was set back": {now.Add(time.Hour), func(string) error { return nil }, true},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if !tt.at.IsZero() {
			if err := rewrite("one", tt.at)(path); err != nil {
				t.Fatal(err)
			}
		}
		before := StampOf(os.Lstat(path))
		if err := tt.change(path); err != nil {
			t.Fatal(err)
		}
		if same := before.Same(StampOf(os.Lstat(path))); same != tt.same {
			t.Errorf("%s: the same: %t, want %t", name, same, tt.same)
		}
	}
}

// rewrite writes a file in place, as if at a time.
func rewrite(text string, at time.Time) func(path string) error {
	return func(path string) error {
		return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
	}
}

// TestNothingIsTheSameAsWhatWasNotSeen.
func TestNothingIsTheSameAsWhatWasNotSeen(t *testing.T) {
	t.Parallel()
	var nothing Stamp
	denied := StampOf(nil, fs.ErrPermission)
	if nothing.Same(nothing) || denied.Same(denied) || nothing.Same(StampOf(nil, fs.ErrNotExist)) {
		t.Error("a file of which nothing is known is taken for unchanged")
	}
}
