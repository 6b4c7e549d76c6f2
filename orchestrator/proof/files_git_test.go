package proof

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFilesByGit: what git ignores, and what only has another time, is no progress; a
// repository that is hostile, locked or broken runs nothing and holds nothing up.
func TestFilesByGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	look := func(prefix string) string {
		t.Helper()
		got := Files(t.Context(), dir)
		if got == "" || strings.HasPrefix(got, "git-") != (prefix == "git") {
			t.Fatalf("got %q", got)
		}
		return got
	}
	git("init", "-q")
	put(".gitignore", "out/\n")
	put("a.go", "package a")
	put("b.go", "package b")
	git("add", "-A")
	git("commit", "-qm", "first")
	first := look("git")

	put("out/build.log", "x")
	put(".heartbeat/hook.log", "x")
	if err := os.Chtimes(at("a.go"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ran := at("out/ran")
	for _, name := range []string{"core.fsmonitor", "core.hooksPath", "core.pager", "core.sshCommand", "filter.f.clean", "filter.f.process", "diff.external", "alias.ls-files", "core.editor"} {
		git("config", name, "touch "+ran+" #")
	}
	put(".git/info/attributes", "* filter=f diff=f\n")
	put(".git/index.lock", "")
	if look("git") != first {
		t.Error("what is no work counts as progress")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("something of the repository's configuration was run")
	}

	seen := map[string]bool{first: true}
	for name, change := range map[string]func(){
		"same size":   func() { put("a.go", "package c") },
		"a new file":  func() { put("new.go", "") },
		"one is gone": func() { _ = os.Remove(at("b.go")) },
		"one may run": func() { _ = os.Chmod(at("a.go"), 0o700) },
	} {
		change()
		if now := look("git"); seen[now] {
			t.Errorf("%s is no change", name)
		} else {
			seen[now] = true
		}
	}

	put(".git/index", "no index")
	look("sizes and times")
	_ = os.Remove(at(".git/index"))
	if err := syscall.Mkfifo(at(".git/index"), 0o600); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if got := Files(soon, dir); got != "" || time.Since(began) > gitTime {
		t.Errorf("after %s: %q", time.Since(began), got)
	}
}

// TestFilesBelowARepository: one above, which may ignore the whole directory, says
// nothing about it.
func TestFilesBelowARepository(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "agents", "a")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", top).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, ".gitignore"), []byte("agents/"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := Files(t.Context(), dir)
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after := Files(t.Context(), dir); before == "" || after == before {
		t.Errorf("%q, then %q", before, after)
	}
}
