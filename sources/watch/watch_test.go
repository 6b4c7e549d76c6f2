package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/sources"
)

// rig is a directory with a watch trigger, and what it fired.
type rig struct {
	t    *testing.T
	dir  string
	stop func()
	// outside is a directory on the same file system.
	outside string

	mu     sync.Mutex
	fires  []string
	labels []string
	errs   []string
	seen   sources.Seen
	err    error
}

// trigger returns a trigger that writes to the rig.
func (r *rig) trigger(patterns ...string) Trigger {
	tmpl, err := sources.ParseFileTemplate("{{.Event}} {{.Path}}")
	if err != nil {
		r.t.Fatal(err)
	}
	return Trigger{
		Dir: r.dir, Patterns: patterns, Debounce: 40 * time.Millisecond, Template: tmpl,
		Emit: r.emit, Record: r.record, Failed: r.failed,
	}
}

func (r *rig) emit(_ context.Context, p sources.Prompt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.fires, r.labels = append(r.fires, p.Text), append(r.labels, p.Label)
	return nil
}

// record keeps what was seen, by way of JSON.
func (r *rig) record(s sources.Seen) {
	b, err := json.Marshal(s)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
	if err := json.Unmarshal(b, &r.seen); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) failed(_ time.Time, err error, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err.Error())
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	return anotherRig(t)
}

func anotherRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), outside: t.TempDir(), stop: func() {}}
	t.Cleanup(func() { r.stop() })
	return r
}

// start runs a watcher with triggers, going on from what was recorded.
func (r *rig) start(triggers ...Trigger) *Watcher {
	r.t.Helper()
	w := New()
	w.retry = 20 * time.Millisecond
	for i, tr := range triggers {
		r.mu.Lock()
		tr.Seen = r.seen
		r.mu.Unlock()
		if err := w.Set(fmt.Sprint(i), tr); err != nil {
			r.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx, func(err error) { r.t.Error(err) }) })
	r.stop = func() { cancel(); done.Wait() }
	return w
}

// write puts a whole file in its place: a busy machine could stop us for
// longer than the debounce between making a file and writing it.
func (r *rig) write(name, content string) {
	r.t.Helper()
	name = filepath.Join(r.dir, name)
	r.must(os.MkdirAll(filepath.Dir(name), 0o700))
	temp := filepath.Join(r.outside, "temp")
	r.must(os.WriteFile(temp, []byte(content), 0o600))
	r.must(os.Rename(temp, name))
}

// rewrite writes a file in place.
func (r *rig) rewrite(name, content string) {
	r.t.Helper()
	r.must(os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// until polls for a condition under the rig's lock.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(testbed.Patience)
	for time.Now().Before(deadline) {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Fatalf("waited for %s; fired so far: %q, errors: %q", what, r.fires, r.errs)
}

// want waits for fires, in any order, and takes them.
func (r *rig) want(fires ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("%q", fires), func() bool { return len(r.fires) >= len(fires) })
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.fires)
	slices.Sort(fires)
	if !slices.Equal(r.fires, fires) {
		r.t.Fatalf("fired %q, want %q", r.fires, fires)
	}
	r.fires = nil
}

// wantNothing shows that what was done before fires nothing: a file made
// after it, whose name sorts last, is the only one that does.
func (r *rig) wantNothing() {
	r.t.Helper()
	r.mu.Lock()
	sentinels := len(r.labels)
	r.mu.Unlock()
	name := fmt.Sprintf("zzz%d.md", sentinels)
	r.write(name, "sentinel")
	r.want("created " + name)
}

func TestFilesBeforeTheFirstStart(t *testing.T) {
	r := newRig(t)
	r.write("b.md", "b")
	r.write("in/a.md", "a")
	r.write("in/a.txt", "no match")
	r.start(r.trigger("**/*.md"))
	r.want("created b.md", "created in/a.md")
	r.until("the record", func() bool { return len(r.seen) == 2 })
	r.stop()
	r.start(r.trigger("**/*.md"))
	r.wantNothing()
}

func TestChangesWhileDown(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"same.md", "changed.md", "touched.md", "gone.md", "replaced.md"} {
		r.write(name, "1")
	}
	tr := r.trigger("*.md")
	tr.Removed = true
	r.start(tr)
	r.want("created same.md", "created changed.md", "created touched.md", "created gone.md", "created replaced.md")
	r.until("the record", func() bool { return len(r.seen) == 5 })
	r.stop()
	r.write("changed.md", "2")
	r.write("new.md", "1")
	r.write("tmp", "3")
	old := time.Unix(0, r.seen["replaced.md"].ModTime)
	r.must(os.Chtimes(filepath.Join(r.dir, "tmp"), old, old)) // as cp -p does: same size and time
	r.must(os.Rename(filepath.Join(r.dir, "tmp"), filepath.Join(r.dir, "replaced.md")))
	r.must(os.Chtimes(filepath.Join(r.dir, "touched.md"), time.Now(), time.Now()))
	r.must(os.Remove(filepath.Join(r.dir, "gone.md")))
	r.start(tr)
	r.want("changed changed.md", "created new.md", "changed replaced.md", "removed gone.md")
	r.wantNothing()
}

// unhurried runs a test with a debounce that is longer than what the test does within
// one. The test returns false, before it judges anything, where that took longer: a busy
// machine may stop it for any time. Then it runs again with a longer debounce.
func unhurried(t *testing.T, test func(r *rig, debounce time.Duration) bool) {
	t.Helper()
	t.Parallel()
	for debounce := 250 * time.Millisecond; ; debounce *= 2 {
		r := anotherRig(t)
		done := test(r, debounce)
		r.stop()
		if done {
			return
		}
		if debounce > testbed.Patience {
			t.Fatalf("%v are too short for what is done within a debounce", debounce)
		}
	}
}

func TestSameContentIsNoChange(t *testing.T) {
	unhurried(t, func(r *rig, debounce time.Duration) bool {
		r.write("a.md", "content")
		tr := r.trigger("*.md")
		tr.Debounce = debounce
		r.start(tr)
		r.want("created a.md")
		a := filepath.Join(r.dir, "a.md")
		began := time.Now()
		r.must(os.Chtimes(a, time.Now(), time.Now()))
		r.must(os.Chmod(a, 0o644))
		r.rewrite("a.md", "content")
		r.rewrite("a.md.swp", "content")
		r.must(os.Rename(a+".swp", a))
		r.must(os.Rename(a, a+"~"))
		r.rewrite("a.md", "content")
		r.must(os.Remove(a + "~"))
		if !within(debounce, began) {
			return false
		}
		r.wantNothing()
		began = time.Now()
		r.rewrite("a.md", "other content")
		if !within(debounce, began) {
			return false
		}
		r.want("changed a.md")
		r.write("a.md", "third content")
		r.want("changed a.md")
		return true
	})
}

// within reports whether what began then took less than a debounce, of which the times of
// files take a little.
func within(debounce time.Duration, began time.Time) bool {
	return time.Since(began) < debounce-20*time.Millisecond
}

func TestNewDirectories(t *testing.T) {
	r := newRig(t)
	r.start(r.trigger("in/**/*.md"))
	r.wantNothingIn("in")
	r.write("in/a/b/c/x.md", "x")
	r.want("created in/a/b/c/x.md")
	r.write("in/a/b/c/y.md", "y")
	r.want("created in/a/b/c/y.md")
	// Moved into the tree with what is in them, and within it.
	r.write("out/d/z.md", "z")
	r.must(os.Rename(filepath.Join(r.dir, "out/d"), filepath.Join(r.dir, "in/d")))
	r.want("created in/d/z.md")
	r.must(os.Rename(filepath.Join(r.dir, "in/d"), filepath.Join(r.dir, "in/e")))
	r.want("created in/e/z.md")
	r.write("in/e/z2.md", "z")
	r.want("created in/e/z2.md")
}

// wantNothingIn waits until the trigger works below a directory.
func (r *rig) wantNothingIn(dir string) {
	r.t.Helper()
	r.write(dir+"/first.md", "first")
	r.want("created " + dir + "/first.md")
}

func TestDirectoryMadeAgain(t *testing.T) {
	r := newRig(t)
	r.start(r.trigger("in/*.md"))
	r.wantNothingIn("in")
	for i := range 5 {
		r.must(os.RemoveAll(filepath.Join(r.dir, "in")))
		name := fmt.Sprintf("in/%d.md", i)
		r.write(name, "x")
		r.want("created " + name)
	}
}

// TestAFolderThatWasNeverThereIsTold after an hour, until it is made: its pattern may be
// misspelt. One that was there, and one that may come yet, are not.
func TestAFolderThatWasNeverThereIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		patterns []string
		age      time.Duration
		told     string
	}{
		"never":             {[]string{"incoming/*.md"}, missingFor, "cannot watch incoming: there is no such folder"},
		"one of them":       {[]string{"*.txt", "in/**", "other/x/*.md"}, missingFor, "cannot watch other/x: there is no such folder"},
		"not for an hour":   {[]string{"incoming/*.md"}, missingFor - time.Minute, ""},
		"there":             {[]string{"in/*.md", "**/*.md", "a.md"}, missingFor, ""},
		"only a file of it": {[]string{"in/none.md"}, missingFor, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := anotherRig(t)
			r.must(os.Mkdir(filepath.Join(r.dir, "in"), 0o700))
			w, works := New(), make(chan struct{}, 10)
			tr := r.trigger(c.patterns...)
			tr.Succeeded = func() { works <- struct{}{} }
			r.must(w.Set("0", tr))
			w.targets["0"].began = time.Now().Add(-c.age)
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { w.Run(ctx, nil) })
			defer func() { cancel(); done.Wait() }()
			if c.told == "" {
				<-works
				return
			}
			r.until("it is told", func() bool { return len(r.errs) > 0 })
			r.mu.Lock()
			told := r.errs[0]
			r.mu.Unlock()
			if !strings.HasPrefix(told, c.told) {
				t.Errorf("told %q, want %q", told, c.told)
			}
			r.must(os.MkdirAll(filepath.Join(r.dir, "incoming"), 0o700))
			r.must(os.MkdirAll(filepath.Join(r.dir, "other/x"), 0o700))
			w.mu.Lock()
			w.targets["0"].rescan = time.Now()
			w.mu.Unlock()
			w.notify()
			<-works
		})
	}
}

func TestAgentDirMadeAgain(t *testing.T) {
	r := newRig(t)
	r.dir = filepath.Join(r.dir, "agent")
	r.start(r.trigger("*.md"))
	r.until("a complaint", func() bool { return len(r.errs) > 0 })
	r.write("a.md", "a")
	r.want("created a.md")
	r.must(os.RemoveAll(r.dir))
	r.write("b.md", "b")
	r.want("created b.md")
}

func TestDebounceWaitsForTheWriter(t *testing.T) {
	unhurried(t, func(r *rig, debounce time.Duration) bool {
		tr := r.trigger("*.md")
		tr.Debounce = debounce
		r.start(tr)
		began := time.Now()
		f, err := os.Create(filepath.Join(r.dir, "a.md"))
		r.must(err)
		defer f.Close()
		for last, i := began, 0; last.Sub(began) < debounce*3/2; i++ { // without a pause of a debounce
			before := time.Now()
			_, err := fmt.Fprintln(f, i)
			r.must(err)
			if !within(debounce, last) {
				return false
			}
			last = before
			time.Sleep(debounce / 40)
		}
		r.must(f.Close())
		r.want("created a.md")
		if !strings.HasPrefix(r.labels[0], "a.md#"+sumOf(t, filepath.Join(r.dir, "a.md"))) {
			t.Errorf("the label %s is not of the finished file", r.labels[0])
		}
		r.wantNothing()
		return true
	})
}

func sumOf(t *testing.T, name string) string {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, err := (&tree{root: root}).print(filepath.Base(name))
	if err != nil {
		t.Fatal(err)
	}
	return p.Sum[:12]
}

func TestFailedEmitIsTriedAgain(t *testing.T) {
	r := newRig(t)
	r.err = errors.New("disk full")
	r.write("a.md", "a")
	r.write("b.md", "b")
	r.start(r.trigger("*.md"))
	r.until("two failures", func() bool { return len(r.errs) >= 2 })
	r.mu.Lock()
	if r.errs[0] != "disk full" || r.seen != nil {
		t.Errorf("errors %q, seen %v", r.errs, r.seen)
	}
	r.err = nil
	r.mu.Unlock()
	r.want("created a.md", "created b.md")
}

func TestRemovedAndMadeAgain(t *testing.T) {
	r := newRig(t)
	tr := r.trigger("*.md")
	tr.Removed = true
	r.start(tr)
	for range 2 {
		r.write("a.md", "the same")
		r.want("created a.md")
		r.must(os.Remove(filepath.Join(r.dir, "a.md")))
		r.want("removed a.md")
	}
	slices.Sort(r.labels)
	if n := len(slices.Compact(r.labels)); n != 4 {
		t.Errorf("labels are not distinct: %q", r.labels)
	}
}

func TestNothingOutsideIsRead(t *testing.T) {
	r := newRig(t)
	outside := t.TempDir()
	r.must(os.WriteFile(filepath.Join(outside, "secret.md"), []byte("secret"), 0o600))
	r.must(os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(r.dir, "link.md")))
	r.must(os.Symlink(outside, filepath.Join(r.dir, "dir")))
	r.must(os.Symlink(".", filepath.Join(r.dir, "loop")))
	r.must(syscall.Mkfifo(filepath.Join(r.dir, "fifo.md"), 0o600))
	r.must(os.Mkdir(filepath.Join(r.dir, "dir.md"), 0o700))
	for _, name := range []string{".git/a.md", ".heartbeat/b.md", "sub/.claude/c.md"} {
		r.write(name, "skipped")
	}
	r.start(r.trigger("**/*.md"))
	r.wantNothing()
	r.must(os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(r.dir, "later.md")))
	r.must(syscall.Mkfifo(filepath.Join(r.dir, "later-fifo.md"), 0o600))
	r.write(".git/later.md", "skipped")
	r.wantNothing()
}

func TestNamedDirectoriesAreNotSkipped(t *testing.T) {
	r := newRig(t)
	r.write(".claude/plans/a.md", "a")
	r.write(".git/b.md", "b")
	r.start(r.trigger(".claude/**/*.md"))
	r.want("created .claude/plans/a.md")
}

func TestOddNames(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("d/", 100) + strings.Repeat("n", 200) + ".md"
	for _, name := range []string{"a\nb.md", "\xff.md", `"q".md`, "ünï 名.md", long} {
		r.write(name, "x")
	}
	r.start(r.trigger("**/*.md"))
	want := []string{`created "a\nb.md"`, `created "\xff.md"`, `created "\"q\".md"`, "created ünï 名.md", "created " + long}
	if maxDepth < 100 {
		want = want[:4] // too deep to be looked at
	}
	r.want(want...)
	for _, l := range r.labels {
		if len(l) > 200 {
			t.Errorf("a label of %d bytes: %s", len(l), l)
		}
	}
	r.until("the record", func() bool { return len(r.seen) == len(want) })
	r.stop()
	r.start(r.trigger("**/*.md"))
	r.wantNothing()
}

// TestDirectoryReplaced opens what was a directory when it was listed.
func TestDirectoryReplaced(t *testing.T) {
	r := newRig(t)
	r.must(syscall.Mkfifo(filepath.Join(r.dir, "fifo"), 0o600))
	r.must(os.Symlink(r.outside, filepath.Join(r.dir, "link")))
	r.write("file", "x")
	root, err := os.OpenRoot(r.dir)
	r.must(err)
	defer root.Close()
	for _, name := range []string{"fifo", "link", "file", "none"} {
		if dir, err := openDir(root, name); err == nil {
			dir.Close()
			t.Errorf("%s is opened as a directory", name)
		}
		tr := tree{root: root, patterns: []pattern{{glob: "**", base: "."}}}
		if files, err := tr.walk(name); len(files) > 0 || err != nil && name != "link" {
			t.Errorf("%s: found %v, %v", name, files, err)
		}
	}
}

// TestWhatCannotBeReadIsToldUntilItCan: a file and directories that may not be read were
// complained of once, and the next file that fired ended that; a file below a directory that
// may not be read any more counted as removed, and fired again later.
func TestWhatCannotBeReadIsToldUntilItCan(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	r := newRig(t)
	for _, f := range []string{"in/a.md", "in/deep/b.md", "in/shut/d.md", "c.md"} {
		r.write(f, f)
	}
	standing, succeeded := "", 0
	tr := r.trigger("**/*.md")
	tr.Removed = true
	tr.Failed = func(_ time.Time, err error, _ time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		standing = err.Error()
	}
	tr.Succeeded = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		succeeded++
		standing = ""
	}
	allow := func(mode os.FileMode, paths ...string) {
		for _, p := range paths {
			r.must(os.Chmod(filepath.Join(r.dir, p), mode))
		}
	}
	w := r.start(tr)
	r.want("created c.md", "created in/a.md", "created in/deep/b.md", "created in/shut/d.md")
	anew := func() { // compares all
		w.mu.Lock()
		for _, t := range w.targets {
			t.rescan = time.Now()
		}
		w.notify()
		w.mu.Unlock()
	}
	told := func(want string) {
		t.Helper()
		anew()
		r.until("it says "+want, func() bool { return standing == want })
	}
	allow(0, "in/deep", "in/shut")
	t.Cleanup(func() { allow(0o700, "in/deep", "in/shut") })
	told("cannot list the watched directory in/deep: permission denied; and 1 more cannot be listed")
	r.write("in/new.md", "new")
	r.want("created in/new.md")
	told("cannot list the watched directory in/deep: permission denied; and 1 more cannot be listed")
	allow(0o700, "in/deep")
	told("cannot list the watched directory in/shut: permission denied")
	r.write("c.md", "other")
	allow(0, "c.md")
	told("cannot list the watched directory in/shut: permission denied; cannot read the watched file c.md: permission denied")
	if _, err := Scan(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "in/shut: permission denied; cannot read the watched file c.md") {
		t.Errorf("by hand: %v", err)
	}
	r.want("created in/a.md", "created in/deep/b.md", "created in/new.md") // by hand
	r.must(os.Remove(filepath.Join(r.dir, "c.md")))
	r.want("removed c.md")
	told("cannot list the watched directory in/shut: permission denied")
	allow(0o700, "in/shut")
	told("")
	r.wantNothing()
	if succeeded == 0 {
		t.Error("it never said that it works")
	}
}

func TestLongLabel(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü/", 2000) + "a.md"
	a, b := label(long, created, sources.Print{Sum: "abc"}), label("x"+long, created, sources.Print{Sum: "abc"})
	if len(a) > 200 || a == b || !strings.HasSuffix(a, "/a.md#abc.0") {
		t.Errorf("labels are %q and %q", a, b)
	}
}

// TestLostNotifications makes the system's queue overflow, so that nothing
// tells of the file made last.
func TestLostNotifications(t *testing.T) {
	r := newRig(t)
	w := r.start(r.trigger("*.md"))
	r.wantNothing()
	w.mu.Lock() // nobody takes notifications now
	var junk [2]*os.File
	for i := range junk {
		var err error
		junk[i], err = os.Create(filepath.Join(r.dir, fmt.Sprint("junk", i)))
		r.must(err)
		defer junk[i].Close()
	}
	for i := range 17_000 { // the queue holds 16,384; equal neighbours would be one
		_, err := junk[i%2].WriteAt([]byte("x"), 0)
		r.must(err)
	}
	r.write("a.md", "a")
	w.mu.Unlock()
	r.want("created a.md")
}

// TestManyTriggers has more triggers than a user may have instances of
// notifications.
func TestManyTriggers(t *testing.T) {
	r := newRig(t)
	var triggers []Trigger
	for i := range 200 {
		tr := r.trigger(fmt.Sprintf("%d/*.md", i))
		tr.Dir = filepath.Join(r.dir, fmt.Sprint("agent", i%20))
		r.must(os.MkdirAll(tr.Dir, 0o700))
		triggers = append(triggers, tr)
	}
	r.start(triggers...)
	var want []string
	for i := range 200 {
		r.write(fmt.Sprintf("agent%d/%d/a.md", i%20, i), "a")
		want = append(want, fmt.Sprintf("created %d/a.md", i))
	}
	r.want(want...)
	if len(r.errs) > 0 {
		t.Errorf("errors: %q", r.errs)
	}
}

func TestReplaceAndRemove(t *testing.T) {
	r := newRig(t)
	w := r.start(r.trigger("*.md"), r.trigger("*.txt"))
	r.write("a.md", "a")
	r.write("a.txt", "a")
	r.want("created a.md", "created a.txt")
	w.Remove("1")
	w.Remove("unknown")
	r.write("b.txt", "b")
	r.wantNothing()
	tr := r.trigger("*.go")
	r.must(w.Set("0", tr))
	r.write("b.md", "b")
	r.write("b.go", "b")
	r.want("created b.go")
	for _, bad := range []string{"", "/etc/*", "../x", "a/../../b", "{a,../b}/c", "[a"} {
		if err := w.Set("bad", r.trigger(bad)); err == nil {
			t.Errorf("the pattern %q is taken", bad)
		}
	}
}

// TestWithoutNotifications fakes time, in which the system's notifications
// have no part.
func TestWithoutNotifications(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		w := New()
		tr := r.trigger("in/*.md")
		r.must(w.Set("a", tr))
		defer serve(w)()
		fired := func(want string) {
			t.Helper()
			time.Sleep(2 * blindEvery)
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := strings.Join(r.fires, ", "); got != want {
				t.Errorf("fired %q, want %q", got, want)
			}
			r.fires = nil
		}
		r.write("in/a.md", "1")
		fired("created in/a.md")
		r.write("in/a.md", "2")
		r.write("in/b.md", "1")
		fired("changed in/a.md, created in/b.md")
		time.Sleep(time.Hour)
		fired("")
		if len(r.errs) != 1 || !strings.Contains(r.errs[0], "no notifications") {
			t.Errorf("errors: %q", r.errs)
		}
	})
}

func TestScan(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"b.md", "in/a.md", "in/a.txt"} {
		r.write(name, name)
	}
	tr := r.trigger("**/*.md")
	for range 2 { // whatever was seen before
		seen, err := Scan(t.Context(), tr)
		r.must(err)
		if len(seen) != 2 || seen["in/a.md"].Size != 7 {
			t.Errorf("seen is %v", seen)
		}
		if got := strings.Join(r.fires, ", "); got != "created b.md, created in/a.md" {
			t.Errorf("fired %q", got)
		}
		r.fires, tr.Seen = nil, seen
	}
	r.err = errors.New("disk full")
	if _, err := Scan(t.Context(), tr); !errors.Is(err, r.err) {
		t.Errorf("the error is %v", err)
	}
	tr.Dir = filepath.Join(r.dir, "none")
	if _, err := Scan(t.Context(), tr); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestOwnChangesAreSeenAndDoNotFire(t *testing.T) {
	r := newRig(t)
	var own atomic.Bool
	own.Store(true)
	tr := r.trigger("*.md")
	tr.Removed = true
	tr.Own = func(at time.Time) bool {
		if age := time.Since(at); age < -time.Second || age > time.Minute {
			t.Errorf("asked about a change %v ago", age)
		}
		return own.Load()
	}
	r.start(tr)
	r.write("mine.md", "1")
	r.write("gone.md", "1")
	r.until("both are seen", func() bool { return len(r.seen) == 2 })
	r.must(os.Remove(filepath.Join(r.dir, "gone.md")))
	r.until("one is gone", func() bool { return len(r.seen) == 1 })
	own.Store(false)
	r.write("theirs.md", "1")
	r.want("created theirs.md")
	r.write("mine.md", "2")
	r.want("changed mine.md")
}

// TestTriggersThatHangHoldUpNobody: eight gates that hung took all workers,
// and no file fired meanwhile.
func TestTriggersThatHangHoldUpNobody(t *testing.T) {
	r := newRig(t)
	r.write("a.md", "x")
	triggers := make([]Trigger, 3*workers)
	for i := range triggers {
		triggers[i] = r.trigger("*.md")
		triggers[i].Slow = true
		triggers[i].Emit = func(ctx context.Context, _ sources.Prompt) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	r.start(append(triggers, r.trigger("*.md"))...)
	r.want("created a.md")
}
