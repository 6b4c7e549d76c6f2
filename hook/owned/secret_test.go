package owned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestSecretsAsContainersMountThem: only mode 0600 was taken, which no volume of secrets has.
func TestSecretsAsContainersMountThem(t *testing.T) {
	t.Parallel()
	const me, shared, another = 1000, 2000, 3000
	for name, tt := range map[string]struct {
		mode     fs.FileMode
		uid, gid int
		mounted  bool // read-only, in a container
		ok       bool
	}{
		"this user's alone":                      {0o600, me, shared, false, true},
		"this user's, read-only":                 {0o400, me, shared, false, true},
		"root's, for a group that we are in":     {0o440, 0, shared, false, true},
		"root's, which it can write":             {0o640, 0, shared, false, true},
		"root's, for root's group":               {0o440, 0, 0, false, true}, // an access control list lets us
		"root's, for another group":              {0o440, 0, another, false, false},
		"root's, for everybody":                  {0o444, 0, shared, false, false},
		"root's, which everybody can write":      {0o442, 0, shared, false, false},
		"root's, which the group can write":      {0o460, 0, shared, false, false},
		"this user's, for a group":               {0o440, me, shared, false, false},
		"of a read-only mount, for a group":      {0o440, another, shared, true, true},
		"of a read-only mount, for another":      {0o440, another, another, true, true},
		"of a read-only mount, for nobody else":  {0o400, another, another, true, true},
		"of a read-only mount, for everybody":    {0o444, another, another, true, false},
		"this user's, which everybody can enter": {0o601, me, shared, false, false},
	} {
		err := readers(tt.mode, tt.uid, tt.gid, me, []int{me, shared}, tt.mounted)
		if _, is := errors.AsType[*Error](err); is == tt.ok || err != nil != is {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretsBehindLinks: Kubernetes makes a secret's name a link to ..data/NAME, and ..data a
// link to what it has mounted last.
func TestSecretsBehindLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(os.Mkdir(filepath.Join(dir, "..2026"), 0o700))
	put(os.WriteFile(filepath.Join(dir, "..2026", "token"), []byte("x"), 0o400))
	put(os.Symlink("..2026", filepath.Join(dir, "..data")))
	put(os.Symlink("..data/token", filepath.Join(dir, "token")))
	check := func() error {
		f, err := os.Open(filepath.Join(dir, "token"))
		put(err)
		defer f.Close()
		return CheckSecret(f)
	}
	put(check())
	put(os.Chmod(filepath.Join(dir, "..2026", "token"), 0o444))
	if _, is := errors.AsType[*Error](check()); !is {
		t.Error("a secret that everybody can read is taken")
	}
	if os.Getuid() != 0 {
		return
	}
	put(os.Chmod(filepath.Join(dir, "..2026", "token"), 0o440))
	put(os.Chown(filepath.Join(dir, "..2026", "token"), nobody, nobody))
	if _, is := errors.AsType[*Error](check()); !is {
		t.Error("a secret that another user can replace is taken")
	}
}
