package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// nobody is a user who is not this one.
const nobody = 65534

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode     os.FileMode
		uid, gid int
		why, fix string
	}{
		"mine":                   {mode: 0o600, uid: -1, gid: -1},
		"others may read it":     {mode: 0o644, uid: -1, gid: -1},
		"everybody may write it": {mode: 0o646, uid: -1, gid: -1, why: "everybody can write it (mode 0646)", fix: "chmod go-w"},
		"a group may write it":   {mode: 0o664, uid: -1, gid: nobody, why: "its group can write it (mode 0664, group 65534)", fix: "chmod g-w"},
		"another user's":         {mode: 0o600, uid: nobody, gid: -1, why: "it belongs to user", fix: "chown " + strconv.Itoa(os.Getuid())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.uid+tt.gid != -2 && os.Getuid() != 0 {
				t.Skip("only root can give files away")
			}
			path := filepath.Join(t.TempDir(), "file")
			for _, err := range []error{os.WriteFile(path, nil, 0o600), os.Chown(path, tt.uid, tt.gid), os.Chmod(path, tt.mode)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			err = Check(info)
			other, _ := errors.AsType[*Error](err)
			if (err != nil) != (tt.why != "") || other != nil && (!strings.HasPrefix(other.Why, tt.why) || other.Fix != tt.fix) {
				t.Errorf("%v (%+v)", err, other)
			}
		})
	}
}

// TestCheckPlace: who can put another folder in the place of one that is safe
// itself.
func TestCheckPlace(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give folders away")
	}
	for name, tt := range map[string]struct {
		folder string // whose mode and owner are changed
		mode   os.FileMode
		uid    int
		link   string // name → target
		path   string
		bad    bool
	}{
		"mine":                          {path: "a/b/c"},
		"not there yet":                 {path: "a/b/new/deep"},
		"everybody's":                   {folder: "a/b/c", mode: 0o777, path: "a/b/c"}, // its own mode is its user's matter
		"in everybody's":                {folder: "a/b", mode: 0o777, path: "a/b/c", bad: true},
		"above that":                    {folder: "a", mode: 0o777, path: "a/b/c", bad: true},
		"in everybody's, sticky":        {folder: "a/b", mode: 0o777 | os.ModeSticky, path: "a/b/c"},
		"not there yet, in a sticky":    {folder: "a/b", mode: 0o777 | os.ModeSticky, path: "a/b/new"},
		"another's":                     {folder: "a/b/c", mode: 0o700, uid: nobody, path: "a/b/c", bad: true},
		"in another's":                  {folder: "a/b", mode: 0o755, uid: nobody, path: "a/b/c", bad: true},
		"in another's, sticky":          {folder: "a/b", mode: 0o755 | os.ModeSticky, uid: nobody, path: "a/b/c", bad: true},
		"by a link":                     {link: "l:a/b/c", path: "l"},
		"by a link into everybody's":    {folder: "a/b", mode: 0o777, link: "l:a/b/c", path: "l", bad: true},
		"by another's link in a sticky": {folder: "a/b", mode: 0o777 | os.ModeSticky, uid: -1, link: "a/b/l:../..", path: "a/b/l/a", bad: true},
		"by links without an end":       {link: "l:l", path: "l", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := t.TempDir()
			must := func(errs ...error) {
				t.Helper()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			}
			must(os.MkdirAll(filepath.Join(lab, "a/b/c"), 0o755))
			if from, to, ok := strings.Cut(tt.link, ":"); ok {
				must(os.Symlink(to, filepath.Join(lab, from)))
				if tt.uid < 0 {
					must(os.Lchown(filepath.Join(lab, from), nobody, nobody))
				}
			}
			if tt.folder != "" {
				must(os.Chown(filepath.Join(lab, tt.folder), max(tt.uid, 0), -1), os.Chmod(filepath.Join(lab, tt.folder), tt.mode))
			}
			if err := CheckPlace(filepath.Join(lab, tt.path)); (err != nil) != tt.bad {
				t.Errorf("%v", err)
			}
		})
	}
}

// Systems with umask 002 give each user a group of their own.
func TestThePrivateGroup(t *testing.T) {
	t.Parallel()
	const users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n"
	for groups, want := range map[string]int{
		"root:x:0:\nann:x:1000:\n":     1000,
		"ann:x:1000:ann\n":             1000,
		"ann:x:1000:ben\n":             -1,
		"ann:x:1000:ann,ben\n":         -1,
		"staff:x:1000:\n":              -1,
		"ann:x:1001:\n":                -1,
		"":                             -1,
		"ann:x:1000:\nwheel:x:1000:\n": -1,
	} {
		if got := privateIn("ann", "1000", groups, users); got != want {
			t.Errorf("%q: %d", groups, got)
		}
	}
	if got := privateIn("ann", "1000", "ann:x:1000:\n", users+"ben:x:1001:1000::/:/bin/sh\n"); got != -1 {
		t.Errorf("it is another user's, too: %d", got)
	}
}
