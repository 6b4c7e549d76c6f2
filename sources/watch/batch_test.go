package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/sources"
)

// batch is a trigger that names all files of a batch.
func (r *rig) batch(patterns ...string) Trigger {
	r.t.Helper()
	tr := r.trigger(patterns...)
	tmpl, err := sources.ParseFileTemplate("{{.Event}}{{range .Paths}} {{.}}{{end}}")
	r.must(err)
	tr.Template, tr.Batch, tr.Debounce = tmpl, true, time.Second // more than writing a few files takes
	return tr
}

func TestBatch(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"b.md", "a.md", "in/c.md"} {
		r.write(name, "1")
	}
	short := r.batch("**/*.md")
	short.Debounce = 100 * time.Millisecond // all are there before it starts: they wait for each other
	r.start(short)
	r.want("created a.md b.md in/c.md")
	r.until("the record", func() bool { return len(r.seen) == 3 })
	r.write("a.md", "2")
	r.want("changed a.md")
	r.stop()
	r.start(short)
	r.wantNothing()
	r.stop()
	if _, err := Scan(t.Context(), r.batch("{a,b,in/c}.md")); err != nil {
		t.Fatal(err)
	}
	r.want("created a.md b.md in/c.md")
}

func TestLargeBatchesAreSplit(t *testing.T) {
	r := newRig(t)
	var hits []hit
	for i := range maxBatch + 5 {
		hits = append(hits, hit{rel: fmt.Sprintf("%04d", i), event: created})
	}
	done := 0
	tr := r.batch("*")
	r.must(tr.fireBatch(t.Context(), hits, func(hit) { done++ }))
	if len(r.fires) != 2 || strings.Count(r.fires[0], " ") != maxBatch || strings.Count(r.fires[1], " ") != 5 || done != len(hits) {
		t.Errorf("%d fires for %d files", len(r.fires), done)
	}
	if r.labels[0] == r.labels[1] || !strings.HasPrefix(r.labels[0], "1000-files#") {
		t.Errorf("labels %q", r.labels)
	}
}

// TestABatchOfLongPathsIsSplit: a prompt that named a thousand of them was
// over what an inbox takes.
func TestABatchOfLongPathsIsSplit(t *testing.T) {
	r := newRig(t)
	var hits []hit
	for i := range 100 {
		hits = append(hits, hit{rel: fmt.Sprintf("%02d%s", i, strings.Repeat("x", 4000)), event: created})
	}
	done := 0
	tr := r.batch("*")
	r.must(tr.fireBatch(t.Context(), hits, func(hit) { done++ }))
	for _, fire := range r.fires {
		if len(fire) > maxBatchPaths+1000 {
			t.Errorf("a prompt of %d bytes", len(fire))
		}
	}
	if len(r.fires) != 7 || done != len(hits) {
		t.Errorf("%d fires for %d files", len(r.fires), done)
	}
}

// A batch that could not be queued is offered again, with all its files.
func TestBatchIsKeptUntilItIsQueued(t *testing.T) {
	r := newRig(t)
	r.err = errors.New("no space")
	r.write("a.md", "1")
	r.write("b.md", "1")
	tr := r.batch("*.md")
	tr.Debounce = 100 * time.Millisecond
	r.start(tr)
	r.until("a failure", func() bool { return len(r.errs) > 0 })
	r.mu.Lock()
	r.err = nil
	r.mu.Unlock()
	r.want("created a.md b.md")
}

// inBubble runs a batch trigger in faked time, in which all files are compared each
// blindEvery. aged makes a file, or changes it, that long ago; fired takes what has
// fired after the time that it waits.
func (r *rig) inBubble(test func(tr Trigger, aged func(name string, age time.Duration), fired func(after time.Duration) []string)) {
	synctest.Test(r.t, func(t *testing.T) {
		aged := func(name string, age time.Duration) {
			t.Helper()
			r.write(name, time.Now().String())
			at := time.Now().Add(-age)
			r.must(os.Chtimes(filepath.Join(r.dir, name), at, at))
		}
		fired := func(after time.Duration) (fires []string) {
			time.Sleep(after)
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			fires, r.fires = r.fires, nil
			return fires
		}
		test(r.batch("**/*.md"), aged, fired)
	})
}

// serve runs w without notifications until the returned function is called.
func serve(w *Watcher) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.crew.Serve(ctx, w.changed, w.step) })
	return func() { cancel(); done.Wait() }
}

// TestWhatOneScanFoundFiresTogether: files that were written less than a debounce
// apart each found another one waiting until the patience ended, and fired apart.
func TestWhatOneScanFoundFiresTogether(t *testing.T) {
	r := newRig(t)
	r.inBubble(func(tr Trigger, aged func(string, time.Duration), fired func(time.Duration) []string) {
		aged("a.md", 2*tr.Debounce)
		aged("b.md", tr.Debounce)
		aged("in/c.md", tr.Debounce/2)
		aged("in/d.md", tr.Debounce/4)
		w := New()
		r.must(w.Set("a", tr))
		defer serve(w)()
		if got := fired(tr.Debounce); !slices.Equal(got, []string{"created a.md b.md in/c.md in/d.md"}) {
			t.Errorf("fired %q", got)
		}
	})
}

// TestABatchWaitsForAWriterButNotForEver has a file that is written all the time.
func TestABatchWaitsForAWriterButNotForEver(t *testing.T) {
	r := newRig(t)
	r.inBubble(func(tr Trigger, aged func(string, time.Duration), fired func(time.Duration) []string) {
		aged("a.md", time.Hour)
		aged("log.md", 0)
		w := New()
		r.must(w.Set("a", tr))
		defer serve(w)()
		waited, got := time.Duration(0), []string(nil)
		for ; len(got) == 0 && waited < time.Hour; waited += tr.Debounce / 2 {
			got = fired(tr.Debounce / 2)
			aged("log.md", 0)
		}
		if patience := batchPatience * tr.Debounce; !slices.Equal(got, []string{"created a.md"}) || waited < patience || waited > patience+2*tr.Debounce {
			t.Errorf("fired %q after %v, want a.md alone after %v", got, waited, patience)
		}
		if got := fired(2 * tr.Debounce); !slices.Equal(got, []string{"created log.md"}) {
			t.Errorf("fired %q when it was quiet", got)
		}
	})
}

// TestAFileThatChangesDuringALongLookWaits: its age was taken from the time the look
// began, so that it looked like one of the future and fired while it was written.
func TestAFileThatChangesDuringALongLookWaits(t *testing.T) {
	r := newRig(t)
	tr := r.batch("*.md")
	tr.Debounce = time.Hour
	r.write("listed.md", "1")
	r.write("read.md", "1")
	old := time.Now().Add(-2 * tr.Debounce)
	r.must(os.Chtimes(filepath.Join(r.dir, "read.md"), old, old))
	root, err := os.OpenRoot(r.dir)
	r.must(err)
	defer root.Close()
	l := &look{t: &target{Trigger: tr, seen: sources.Seen{}}, began: time.Now().Add(-time.Minute), again: map[string]time.Time{}}
	l.t.patterns, err = tr.compile()
	r.must(err)
	l.tree = &tree{root: root, patterns: l.t.patterns}
	files, err := l.tree.walk(".")
	r.must(err)
	r.rewrite("read.md", "2") // after it was listed
	for _, f := range files {
		r.must(l.file(t.Context(), f))
	}
	if len(l.batch) > 0 || len(l.again) != 2 {
		t.Errorf("%v would fire, %v wait", l.batch, l.again)
	}
}
