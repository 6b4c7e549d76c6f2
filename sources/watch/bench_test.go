package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRescan is what each trigger costs once a minute when nothing has
// changed: an agent's directory with 10 directories of 10 files.
func BenchmarkRescan(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		name := filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i, ".md"))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	w := New()
	if err := w.Set("a", Trigger{Dir: dir, Patterns: []string{"**/*.md"}}); err != nil {
		b.Fatal(err)
	}
	h, err := newHints(w)
	if err != nil {
		b.Fatal(err)
	}
	w.hints = h
	go h.drain()
	defer w.stopHints(h)
	t := w.targets["a"]
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	tr := &tree{root: root, patterns: t.patterns}
	files, err := tr.walk(".")
	if err != nil || len(files) != 100 {
		b.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if t.seen[f.rel], err = tr.print(f.rel); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		l := &look{w: w, t: t, began: time.Now(), full: true, hinted: map[string]time.Time{}, waiting: map[string]time.Time{}}
		if err := l.run(b.Context()); err != nil || len(l.again) != 0 {
			b.Fatal(err, l.again)
		}
	}
}
