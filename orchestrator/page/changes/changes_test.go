package changes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// lab is a repository of a test.
type lab struct {
	*testing.T
	dir, scratch string
}

// made returns a repository with one commit of some files.
func made(t *testing.T, files map[string]string) *lab {
	t.Helper()
	l := &lab{t, filepath.Join(t.TempDir(), "work"), t.TempDir()}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.git("init", "-q", "-b", "main")
	for name, text := range files {
		l.put(name, text)
	}
	l.git("add", "-A")
	l.git("commit", "-q", "--allow-empty", "-m", "the first")
	return l
}

// git runs the test's own git, which knows nothing of this machine's configuration.
func (l *lab) git(args ...string) {
	l.Helper()
	cmd := exec.Command("git", append([]string{"-C", l.dir, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.scratch, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func (l *lab) put(name, text string) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) changes(dir string) *Changes {
	l.Helper()
	c, err := Of(l.Context(), l.scratch, dir, allWork)
	if err != nil {
		l.Fatal(err)
	}
	if left, err := os.ReadDir(l.scratch); err != nil || len(left) != 0 {
		l.Errorf("left in the folder for it: %v, %v", left, err)
	}
	return c
}

func allWork(string) Share { return Work }

// TestWhatIsNotTheAgentsStandsApart: it takes none of the work's places, also where the
// directory is below the repository's.
func TestWhatIsNotTheAgentsStandsApart(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"in/.wired": "1\n", "in/work": "1\n"})
	l.put("in/.wired", "2\n")
	l.put("in/work", "2\n")
	for i := range mostOwn + 10 {
		l.put(fmt.Sprintf("in/.own/%03d", i), "own\n")
	}
	c, err := Of(t.Context(), l.scratch, filepath.Join(l.dir, "in"), func(name string) Share {
		switch {
		case name == ".wired":
			return Wired
		case strings.HasPrefix(name, ".own/"):
			return Named
		}
		return Work
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := text(c); got != "== in/work: changed +1 -1 \n@@@ -1 +1 @@\n-1\n+2\n" || len(c.Own) != mostOwn || c.OwnMore != 11 || c.More != 0 {
		t.Errorf("%d and %d: %s", len(c.Own), c.OwnMore, got)
	}
	for _, f := range c.Own {
		if wired := f.Name == "in/.wired"; wired != (len(f.Lines) > 0) {
			t.Errorf("%+v", f)
		}
	}
}

// text is all that is shown, a line each.
func text(c *Changes) string {
	var b strings.Builder
	for _, f := range c.Files {
		fmt.Fprintf(&b, "== %s: %s +%d -%d %s\n", f.Name.Raw(), f.Status, f.Added, f.Deleted, f.Note)
		for _, l := range f.Lines {
			fmt.Fprintf(&b, "%c%s\n", l.Kind, l.Text.Raw())
		}
	}
	return b.String()
}

// TestChangesOfADirectory: of all kinds, and of nothing outside of it.
// TestWhatAKilledRunLeftIsSwept: its folders go, those in use and what is not ours stay.
func TestWhatAKilledRunLeftIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"diff-1/objects", "diff-2", "different", "live"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	if err := Sweep(dir, time.Now()); err != nil || len(left()) != 4 {
		t.Errorf("%v: %q", err, left())
	}
	if err := Sweep(dir, time.Now().Add(2*time.Hour)); err != nil || !slices.Equal(left(), []string{"different", "live"}) {
		t.Errorf("%v: %q", err, left())
	}
}

func TestChangesOfADirectory(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{
		"in/same": "x\n", "in/changed": "one\ntwo\nthree\n", "in/gone": "gone\n", "in/mode": "m\n", "in/kind": "k\n", "out/changed": "x\n",
		"in/.gitignore": "ignored\n",
	})
	l.put("in/changed", "one\n-- two\n+++ b/in/same\nthree")
	l.put("in/new file", "new\n")
	l.put("in/ignored", "i\n")
	l.put("in/added", "added\n")
	l.put("in/large", strings.Repeat("x", mostFile+1))
	l.put("out/changed", "y\n")
	l.git("add", "in/added")
	for _, name := range []string{"in/gone", "in/kind"} {
		if err := os.Remove(filepath.Join(l.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(l.dir, "in/kind")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(l.dir, "in/mode"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, l.dir)
	c := l.changes(filepath.Join(l.dir, "in"))
	want := []string{
		"== in/added: added +1 -0 \n@@@ -0,0 +1 @@\n+added\n",
		"== in/changed: changed +3 -2 \n@@@ -1,3 +1,4 @@\n one\n-two\n-three\n+-- two\n++++ b/in/same\n+three\n@no line break at its end\n",
		"== in/gone: deleted +0 -1 \n",
		"== in/kind: changed +1 -1 \n@@@ -1 +0,0 @@\n-k\n@@@ -0,0 +1 @@\n+/etc/passwd\n@no line break at its end\n",
		"== in/mode: changed +0 -0 \n@its mode is now 100644\n",
		"== in/large: new, in no commit +0 -0 too large to show: 524289 bytes\n",
		"== in/new file: new, in no commit +1 -0 \n",
	}
	got := text(c)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("not there: %q", w)
		}
	}
	if len(c.Files) != len(want) || c.Cut != "" || c.Branch != "main" || c.Commit.Subject != "the first" || time.Since(c.Commit.At).Abs() > time.Hour {
		t.Errorf("%+v\n%s", c, got)
	}
	if after := tree(t, l.dir); after != before {
		t.Errorf("it has changed the directory:\n%s\n%s", before, after)
	}
}

// tree is all files below a folder, with their sizes and times.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOtherPlacesOfARepository: a working tree of another one, a submodule, one without a
// commit, packed refs, an old index, none at all.
func TestOtherPlacesOfARepository(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"a": "1\n"})
	l.git("branch", "deep/branch")
	l.git("pack-refs", "--all")
	l.git("worktree", "add", "-q", "../tree", "deep/branch")
	tree := filepath.Join(filepath.Dir(l.dir), "tree")
	if err := os.WriteFile(filepath.Join(tree, "a"), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := l.changes(tree); c.Branch != "deep/branch" || len(c.Files) != 1 || c.Files[0].Added != 1 {
		t.Errorf("a working tree: %+v", c)
	}
	l.git("submodule", "--quiet", "add", l.dir, "module")
	l.put("module/a", "3\n")
	if c := l.changes(filepath.Join(l.dir, "module")); len(c.Files) != 1 || c.Files[0].Name != "a" {
		t.Errorf("a submodule: %s", text(c))
	}
	l.git("commit", "-qm", "module")
	if c := l.changes(l.dir); len(c.Files) != 0 {
		t.Errorf("what changed in a submodule is not ours: %s", text(c))
	}
	l.git("-C", "module", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "x")
	if c := l.changes(l.dir); len(c.Files) != 1 || !strings.HasPrefix(c.Files[0].Note, "a submodule") {
		t.Errorf("a submodule with another commit: %s", text(c))
	}
	l.git("update-index", "--split-index")
	l.put("a", "5\n")
	if c := l.changes(l.dir); !strings.Contains(text(c), "-1\n+5\n") {
		t.Errorf("a split index: %s", text(c))
	}
	l.git("checkout", "-q", "--detach")
	if c := l.changes(l.dir); c.Branch != "" || c.Commit.Hash == "" {
		t.Errorf("detached: %+v", c)
	}
	empty := &lab{t, t.TempDir(), t.TempDir()}
	if _, err := Of(t.Context(), l.scratch, empty.dir, allWork); err == nil || !strings.HasSuffix(err.Error(), ErrNone.Error()) {
		t.Errorf("no repository: %v", err)
	}
	empty.git("init", "-q")
	empty.put("x", "y\n")
	if c := empty.changes(empty.dir); len(c.Files) != 1 || c.Files[0].Added != 1 || c.Commit.Hash != "" {
		t.Errorf("without a commit: %s", text(c))
	}
	empty.git("add", "x")
	if c := empty.changes(empty.dir); len(c.Files) != 1 || c.Files[0].Status != Added || c.Files[0].Added != 1 {
		t.Errorf("without a commit, added: %s", text(c))
	}
}

// TestOnlyItsTimesDiffer: such a file is none that differs.
func TestOnlyItsTimesDiffer(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"a": "1\n", "b": "1\n"})
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(l.dir, "a"), past, past); err != nil {
		t.Fatal(err)
	}
	if c := l.changes(l.dir); len(c.Files) != 0 {
		t.Error(text(c))
	}
}

// TestNothingThatARepositoryNamesIsRun: programs that its configuration, or that of a
// submodule, names for each step, and a git that would start them.
func TestNothingThatARepositoryNamesIsRun(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"a.x": "1\n", "b": "1\n", "sub/c": "1\n"})
	program := filepath.Join(t.TempDir(), "program")
	ran := program + ".ran"
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $@\" >> "+ran+"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.put(".gitattributes", "*.x filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\nb diff=other filter=proc\n")
	l.git("add", ".gitattributes")
	l.git("commit", "-qm", "attributes")
	inner := filepath.Join(l.dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	l.git("-C", inner, "init", "-q")
	l.git("-C", inner, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x")
	l.git("add", "inner")
	l.git("commit", "-qm", "inner")
	evil := map[string]string{
		"core.fsmonitor": program, "core.pager": program, "core.editor": program, "core.sshCommand": program, "core.gitProxy": program,
		"core.hooksPath": filepath.Dir(program), "core.alternateRefsCommand": program, "core.askPass": program,
		"diff.external": program, "diff.evil.command": program, "diff.evil.textconv": program, "diff.other.textconv": program, "diff.other.cachetextconv": "true",
		"filter.evil.clean": program, "filter.evil.smudge": program, "filter.evil.required": "true", "filter.proc.process": program,
		"pager.diff": program, "pager.log": program, "gpg.program": program, "log.showSignature": "true", "interactive.diffFilter": program,
		"alias.diff": "!" + program, "credential.helper": program, "trailer.x.command": program,
		"remote.origin.url": "ext::" + program, "remote.origin.promisor": "true", "remote.origin.uploadpack": program, "extensions.partialClone": "origin", "protocol.ext.allow": "always",
		"core.worktree": "/etc", "submodule.recurse": "true", "status.submoduleSummary": "true", "diff.ignoreSubmodules": "none",
	}
	for _, dir := range []string{l.dir, inner} {
		for key, value := range evil {
			if key != "core.worktree" || dir == l.dir { // last: git itself would no longer find it
				config := exec.Command("git", "config", "--file", filepath.Join(dir, ".git", "config"), key, value)
				if out, err := config.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", key, err, out)
				}
			}
		}
		for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction", "post-checkout"} {
			data, err := os.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, ".git", "hooks", hook), data, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.put("a.x", "2\n")
	l.put("b", "2\n")
	l.put("inner/new", "2\n")
	l.put("fresh.x", "2\n")
	got := text(l.changes(l.dir))
	if !strings.Contains(got, "== b: changed") || !strings.Contains(got, "== a.x: changed") || !strings.Contains(got, "== fresh.x: new") {
		t.Errorf("shown:\n%s", got)
	}
	// A blob that only a remote has.
	blobs, err := filepath.Glob(filepath.Join(l.dir, ".git", "objects", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		if err := os.Remove(blob); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Of(t.Context(), l.scratch, l.dir, allWork); err == nil {
		t.Error("without its objects it has changes")
	}
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("run:\n%s", data)
	}
	// They would be: a git that reads the configuration runs them.
	trap := exec.Command("git", "-C", inner, "status")
	trap.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.scratch}
	out, err := trap.CombinedOutput() // it may fail, as its programs do
	if _, missing := os.Stat(ran); missing != nil {
		t.Errorf("what git itself would run is not run either: %v: %s", err, out)
	}
}

// TestNothingMakesItWait: FIFOs in place of files, in the tree and in the repository.
func TestNothingMakesItWait(t *testing.T) {
	t.Parallel()
	fifo := func(t *testing.T, path string) {
		t.Helper()
		_ = os.Remove(path) // it need not be there
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := made(t, map[string]string{"a": "1\n", "b": "1\n"})
	fifo(t, filepath.Join(l.dir, "a"))
	fifo(t, filepath.Join(l.dir, "new"))
	l.put("b", "2\n")
	got := text(l.changes(l.dir))
	if !strings.Contains(got, "== a: changed +0 -0 it is not a file: p---------\n") || !strings.Contains(got, "-1\n+2\n") {
		t.Errorf("in the tree:\n%s", got)
	}
	for _, name := range []string{"HEAD", "index", "refs/heads/main", "commondir", "info/exclude"} {
		l := made(t, map[string]string{"a": "1\n"})
		fifo(t, filepath.Join(l.dir, ".git", name))
		if _, err := Of(t.Context(), l.scratch, l.dir, allWork); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// What git waits for itself is ended.
	l = made(t, map[string]string{"a": "1\n"})
	l.put("b", "1\n")
	fifo(t, filepath.Join(l.dir, ".gitignore"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := Of(ctx, l.scratch, l.dir, allWork); err == nil && c.Cut == "" && len(c.Files) == 0 {
		t.Errorf("%+v", c)
	}
	if len(places) > atOnce {
		t.Error("places are not given back")
	}
}

// TestAGitThatHangs is ended with what it has started, and its folder removed.
func TestAGitThatHangs(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"a": "1\n"})
	slow := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nprintf half\nsleep 600 &\n: >\"$0.hangs\"\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := find(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := r.scratch(l.scratch)
	if err != nil {
		t.Fatal(err)
	}
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		g := git{slow, folder, r.top, time.Now().Add(limit)}
		c := &Changes{}
		if err := g.fill(t.Context(), c, r.base(), ".", allWork); err != nil || c.Cut == "" {
			t.Errorf("%+v, %v", c, err)
		}
		if time.Until(g.until) > 0 {
			t.Error("it was not waited for")
		}
		if _, err := os.Stat(slow + ".hangs"); err == nil {
			return
		}
		if limit > testbed.Patience { // less may be too short on a busy machine
			t.Fatal("it was not run")
		}
	}
}

// TestMuchIsCut: files, lines, long ones, and says so.
func TestMuchIsCut(t *testing.T) {
	t.Parallel()
	l := made(t, map[string]string{"a-wide": "x\n"})
	l.put("a-wide", strings.Repeat("é", 5000)+"\n")
	for i := range 250 {
		l.put(fmt.Sprintf("new/%03d", i), strings.Repeat("line\n", 100))
	}
	c := l.changes(l.dir)
	lines := 0
	for _, f := range c.Files {
		lines += len(f.Lines)
	}
	if len(c.Files) != mostFiles || c.More != 51 || lines != mostLines || c.Cut == "" {
		t.Errorf("%d files, %d more, %d lines, cut %q", len(c.Files), c.More, lines, c.Cut)
	}
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == "a-wide" })
	if got := c.Files[i].Lines[2].Text.Raw(); !strings.HasSuffix(got, "é… (8000 bytes more)") || len(got) > mostWide+30 {
		t.Errorf("%q", got)
	}
}

// TestNamesOfFiles: whatever a name is, its lines are found and it is none of a command's
// options or patterns.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	names := []string{"-p", "--output=x", ":(exclude)*", "*", "a b/ b", "tab\there", "new\nline", "\x1b[31mred", "\"quoted\"", "ümlaut", "bad\xffutf", "a/b b/a", "back\\slash"}
	l := made(t, map[string]string{"same": "1\n"})
	for _, name := range names {
		l.put(name, "x\n")
	}
	c := l.changes(l.dir)
	if len(c.Files) != len(names) {
		t.Errorf("%d of %d: %s", len(c.Files), len(names), text(c))
	}
	for _, f := range c.Files {
		if f.Added != 1 || f.Note != "" {
			t.Errorf("%q: %+v", f.Name.Raw(), f)
		}
	}
	l.git("add", "-A")
	l.git("commit", "-qm", "all")
	for _, name := range names {
		l.put(name, "y\n")
	}
	if c := l.changes(l.dir); len(c.Files) != len(names) || c.Files[0].Deleted != 1 {
		t.Errorf("%d of %d: %s", len(c.Files), len(names), text(c))
	}
}

// FuzzParse: a patch may be cut anywhere and hold anything.
func FuzzParse(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n"))
	f.Add([]byte("diff --git \"a/\\303\" \"b/\\303\"\n@@ -1,9999999999 +1 @@\n-a\n\\ No"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		p := parse(patch)
		lines := 0
		for _, file := range p.files {
			lines += len(file.Lines)
		}
		if lines > mostLines || lines > 1+strings.Count(string(patch), "\n") {
			t.Errorf("%d lines", lines)
		}
	})
}

// TestLinesAreTold: no content of a file passes for another file, or for a place.
func TestLinesAreTold(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	odd := []string{"diff --git a/evil b/evil", "@@ -1,3 +1,3 @@", "--- a/evil", "+++ b/evil", "Binary files a/x and b/x differ", "", "\\ No newline at end of file", "-", "+", "new mode 100777"}
	l := made(t, map[string]string{"a": "x\n", "z": "x\n"})
	for range 5 {
		var b strings.Builder
		for range 30 {
			b.WriteString(odd[random.IntN(len(odd))] + "\n")
		}
		l.put("a", b.String())
		l.put("z", "y\n")
		c := l.changes(l.dir)
		if len(c.Files) != 2 || c.Files[0].Added != 30 || c.Files[0].Deleted != 1 || text(&Changes{Files: c.Files[1:]}) != "== z: changed +1 -1 \n@@@ -1 +1 @@\n-x\n+y\n" {
			t.Fatal(text(c))
		}
		for _, line := range c.Files[0].Lines[1:] {
			if line.Kind == '@' {
				t.Errorf("%q", line.Text.Raw())
			}
		}
	}
}
