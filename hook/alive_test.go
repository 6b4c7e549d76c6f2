package hook

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// getenv reads a lab's environment: the last of a name counts.
func (l *lab) getenv(name string) (value string) {
	for _, kv := range l.env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// TestASignOfLife is kept for the session that gives it, as long as it may be.
func TestASignOfLife(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, text := range []string{"", "half of the tests", "\x1b[31mred\n\u202e", strings.Repeat("ü", 300)} {
		session, err := SayAlive(l.getenv, text)
		sign, readErr := ReadSign(l.home)
		if err != nil || readErr != nil || session != l.record().Session || sign == nil || sign.Session != session {
			t.Fatalf("%q: %v, %v, %+v", text, err, readErr, sign)
		}
		if want := Cut(text, MaxSaid); sign.Text != want || SignAt(l.home).IsZero() {
			t.Errorf("%q was kept as %q", text, sign.Text)
		}
	}
}

// TestASignOfLifeOfAnotherClient: who is not in the live session says nothing.
func TestASignOfLifeOfAnotherClient(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *lab){
		"without the session's token": func(l *lab) { l.env = append(l.env, EnvSession+"=another") },
		"without a session":           func(l *lab) { l.env = append(l.env, EnvSession+"=") },
		"whose shim is dead":          func(l *lab) { l.release() },
		"inside of a nested client":   func(l *lab) { l.env = append(l.env, "CLAUDE_PID=1") },
		"whose folder is gone":        func(l *lab) { os.RemoveAll(l.home) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) { r.Client, r.BoundAt = self(), time.Now() })
			change(l)
			if _, err := SayAlive(l.getenv, "x"); !errors.Is(err, ErrNoSession) {
				t.Errorf("it was taken: %v", err)
			}
			if sign, err := ReadSign(l.home); sign != nil {
				t.Errorf("kept %+v, %v", sign, err)
			}
		})
	}
}

// TestASignThatTheAgentHasWritten: garbage is an error, a folder or a link is not
// followed, and what is too large is not read.
func TestASignThatTheAgentHasWritten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	path := filepath.Join(l.home, aliveName)
	for name, put := range map[string]func() error{
		"garbage": func() error { return os.WriteFile(path, []byte("no JSON"), 0o600) },
		"large":   func() error { return os.WriteFile(path, []byte(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`), 0o600) },
		"a link":  func() error { return os.Symlink("/etc/hostname", path) },
		"folder":  func() error { return os.Mkdir(path, 0o700) },
	} {
		os.RemoveAll(path)
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if sign, err := ReadSign(l.home); sign != nil || err == nil {
			t.Errorf("%s: %+v, %v", name, sign, err)
		}
	}
}
