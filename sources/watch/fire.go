package watch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/sources"
)

// Trigger is one watch trigger.
type Trigger struct {
	Dir      string   // AGENT_DIR, absolute
	Patterns []string // globs relative to Dir; see New for what they match
	// Debounce is how long a file must stay unchanged before it fires; 0 means 500
	// ms. A file that is written to all the time never fires.
	Debounce time.Duration
	// Removed also fires when a file that has fired is removed.
	Removed bool
	// Batch makes one fire of all files that are found together, at most 1000. It
	// waits up to 20 debounces for files that are still being written. If a crash
	// prevents recording the fire, its files may fire again, together with others.
	Batch bool
	// Own, when not nil, reports whether a change at that time is the agent's own:
	// it is recorded as seen and does not fire.
	Own      func(at time.Time) bool
	Template *sources.Template // of the prompt, see sources.ParseFileTemplate; a blank prompt is not emitted
	// Seen is the last value given to Record. Empty means that the trigger is new:
	// every file that exists fires, as waiting work.
	Seen sources.Seen
	Emit sources.Emit
	// Record stores a new Seen, a copy, for the next start. It is called after each
	// batch of queued fires. A crash between the two emits the same labels again.
	// May be nil.
	Record func(sources.Seen)
	// Failed reports what cannot be watched, or did not fire: all that stands, each time
	// that this is something else; it is tried again after retry. May be nil.
	Failed func(at time.Time, err error, retry time.Duration)
	// Succeeded is called after looks after which nothing of that stands. May be nil.
	Succeeded func()
	// Slow means that Emit may take long, as a command does: it then occupies no
	// worker that other triggers need.
	Slow bool
}

// The events of FileData.
const (
	created = "created"
	changed = "changed"
	removed = "removed"
)

func (t *Trigger) compile() ([]pattern, error) {
	var patterns []pattern
	for _, glob := range t.Patterns {
		p, err := parsePattern(glob)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// Scan fires for every file that matches now, in the order of their paths, whatever
// was seen before, and returns the resulting Seen. When an emit fails, it stops and
// also returns what was seen so far. What cannot be read keeps no other file from firing,
// and is the error.
func Scan(ctx context.Context, t Trigger) (sources.Seen, error) {
	patterns, err := t.compile()
	if err != nil {
		return nil, err
	}
	dir, err := durable.OpenBelow(t.Dir, t.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	defer dir.Close()
	tr := &tree{root: dir.Root(), patterns: patterns}
	files, err := tr.walk(".")
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", t.Dir, err)
	}
	seen := sources.Seen{}
	var batch []hit
	var unread denied
	for _, f := range byPath(files) {
		p, err := tr.print(f.rel)
		for range 5 {
			if !errors.Is(err, errUnsettled) {
				break
			}
			p, err = tr.print(f.rel)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			unread.add(f.rel, unreadable(f.rel, err))
			continue
		}
		if t.Batch {
			batch = append(batch, hit{f.rel, created, p})
			continue
		}
		if err := t.fire(ctx, f.rel, created, p); err != nil {
			return seen, err
		}
		seen[display(f.rel)] = p
	}
	if err := t.fireBatch(ctx, batch, func(h hit) { seen[display(h.rel)] = h.print }); err != nil {
		return seen, err
	}
	return seen, joined(tr.denied.why("cannot be listed"), unread.why("cannot be read"))
}

// unreadable says that a watched file cannot be read.
func unreadable(rel string, err error) error {
	return fmt.Errorf("cannot read the watched file %s: %w", display(rel), reason(err))
}

func byPath(files []found) []found {
	slices.SortFunc(files, func(a, b found) int { return strings.Compare(a.rel, b.rel) })
	return files
}

// fire emits one prompt.
func (t *Trigger) fire(ctx context.Context, rel, event string, p sources.Print) error {
	return t.emit(ctx, display(rel), display(path.Base(rel)), display(filepath.Join(t.Dir, filepath.FromSlash(rel))), event, p)
}

func (t *Trigger) emit(ctx context.Context, shown, name, abs, event string, p sources.Print) error {
	text, err := t.Template.Render(sources.FileData{
		Path: shown, AbsPath: abs, Name: name, Event: event, Paths: []string{shown},
	})
	if err != nil || strings.TrimSpace(text) == "" {
		return err
	}
	return t.Emit(ctx, sources.Prompt{Label: label(shown, event, p), Text: text, At: time.Now()})
}

// hit is a file that must fire.
type hit struct {
	rel, event string
	print      sources.Print
}

// maxBatch bounds the files of one fire, maxBatchPaths the bytes of their paths, so
// that the prompt that names them all fits into an entry.
const maxBatch, maxBatchPaths = 1000, 64 << 10

// batches groups the hits that fire together.
func batches(hits []hit) iter.Seq[[]hit] {
	return func(yield func([]hit) bool) {
		for len(hits) > 0 {
			n, size := 0, 0
			for n < min(maxBatch, len(hits)) && (n == 0 || size+len(hits[n].rel) <= maxBatchPaths) {
				size += len(hits[n].rel)
				n++
			}
			if !yield(hits[:n]) {
				return
			}
			hits = hits[n:]
		}
	}
}

// fireBatch emits one prompt for each batch, and calls done for each file that has
// fired.
func (t *Trigger) fireBatch(ctx context.Context, hits []hit, done func(hit)) error {
	for batch := range batches(hits) {
		first := batch[0]
		data := sources.FileData{
			Path: display(first.rel), AbsPath: display(filepath.Join(t.Dir, filepath.FromSlash(first.rel))),
			Name: display(path.Base(first.rel)), Event: first.event,
		}
		sum := sha256.New()
		for _, h := range batch {
			data.Paths = append(data.Paths, display(h.rel))
			fmt.Fprintln(sum, label(display(h.rel), h.event, h.print))
		}
		text, err := t.Template.Render(data)
		if err == nil && strings.TrimSpace(text) != "" {
			p := sources.Prompt{Label: fmt.Sprintf("%d-files#%.12x", len(batch), sum.Sum(nil)), Text: text, At: time.Now()}
			err = t.Emit(ctx, p)
		}
		if err != nil {
			return err
		}
		for _, h := range batch {
			done(h)
		}
	}
	return nil
}

// maxLabelPath bounds the path in a label, in bytes.
const maxLabelPath = 160

// label names a fire by path, content, and time of the change, because the same
// content at the same path may be new work. After a crash that prevented recording
// the fire, the label is the same.
func label(shown, event string, p sources.Print) string {
	if len(shown) > maxLabelPath {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(shown)))[:12]
		shown = strings.ToValidUTF8(shown[len(shown)-maxLabelPath+len(sum)+3:], "")
		shown = sum + "..." + shown
	}
	what := event
	if event != removed {
		what = p.Sum[:min(12, len(p.Sum))]
	}
	return shown + "#" + what + "." + strconv.FormatInt(p.Changed, 36)
}
