package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/sources"
)

// recordEvery bounds how many fires a crash may repeat.
const recordEvery = 256

// look compares a trigger's files with what was seen of them: all files, or the
// paths that hints named. Its target is busy meanwhile.
type look struct {
	w       *Watcher
	t       *target
	now     time.Time
	full    bool
	hinted  map[string]bool // paths that hints named and that were left alone since
	waiting map[string]bool // that hints named and that are not settled yet

	tree   *tree
	again  map[string]time.Time // what to look at later
	blind  error                // why there are no notifications for a directory
	fresh  bool                 // seen was changed and not recorded
	unsent int                  // fires since the last record
	batch  []hit                // what is to fire together
}

func (l *look) run(ctx context.Context) error {
	l.again = map[string]time.Time{}
	dir, err := durable.OpenBelow(l.t.Dir, l.t.Dir)
	if err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	defer dir.Close()
	defer l.record()
	l.tree = &tree{root: dir.Root(), patterns: l.t.patterns, entered: l.enter}
	files, gone, err := l.collect()
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", l.t.Dir, err)
	}
	if l.full {
		l.complain("", l.blind)
		l.complain(".", l.tree.denied)
	}
	for _, f := range byPath(files) {
		if err := l.file(ctx, f); err != nil {
			return err
		}
	}
	l.postpone()
	err = l.t.fireBatch(ctx, l.batch, func(h hit) { l.t.seen[display(h.rel)], l.fresh = h.print, true })
	if err != nil {
		return err
	}
	slices.Sort(gone)
	for _, key := range gone {
		if err := l.gone(ctx, key); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// enter asks for notifications about a directory before it is listed.
func (l *look) enter(rel string) {
	l.w.mu.Lock()
	h := l.w.hints
	l.w.mu.Unlock()
	if h == nil {
		l.blind = errors.New("there are no notifications about files; all are compared every few seconds")
		return
	}
	if err := h.watch(l.t, rel); err != nil {
		l.blind = fmt.Errorf("cannot get notifications about %s, all is compared every few seconds (is fs.inotify.max_user_watches used up?): %w", display(rel), err)
	}
}

// collect returns the files to compare and the keys of those that are gone.
func (l *look) collect() (files []found, gone []string, err error) {
	if l.full {
		files, err = l.tree.walk(".")
		if err != nil {
			return nil, nil, err
		}
		missing := maps.Clone(l.t.seen)
		for _, f := range files {
			delete(missing, display(f.rel))
		}
		for key := range missing {
			l.vanished(key, &gone)
		}
		return files, gone, nil
	}
	for rel := range l.hinted {
		info, err := l.tree.root.Lstat(rel)
		switch {
		case err == nil && info.IsDir():
			below, err := l.tree.walk(rel)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, below...)
		case err == nil && info.Mode().IsRegular() && l.tree.matches(rel):
			files = append(files, found{rel, info})
		case err == nil || ignoreGone(err) == nil:
			gone = append(gone, l.below(rel)...)
		default:
			return nil, nil, err
		}
	}
	return files, gone, nil
}

// vanished handles a file that a full comparison did not find: a file that is just
// being replaced comes back within the debounce.
func (l *look) vanished(key string, gone *[]string) {
	rel := undisplay(key)
	switch {
	case l.hinted[rel]:
		*gone = append(*gone, key)
	case !l.waiting[rel]:
		l.again[rel] = l.now.Add(l.t.Debounce)
	}
}

// below returns the keys of what was seen at rel and below it.
func (l *look) below(rel string) (keys []string) {
	if key := display(rel); l.t.seen[key] != (sources.Print{}) {
		return []string{key}
	}
	for key := range l.t.seen {
		if strings.HasPrefix(undisplay(key), rel+"/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// undisplay returns the path for which display returned s.
func undisplay(s string) string {
	if strings.HasPrefix(s, `"`) {
		if raw, err := strconv.Unquote(s); err == nil {
			return raw
		}
	}
	return s
}

// file compares one file and fires when its content is new.
func (l *look) file(ctx context.Context, f found) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	key := display(f.rel)
	old, known := l.t.seen[key]
	if l.waiting[f.rel] || known && !l.hinted[f.rel] && sameStat(f.info, old) {
		return nil
	}
	if age := l.now.Sub(f.info.ModTime()); age >= 0 && age < l.t.Debounce {
		l.again[f.rel] = l.now.Add(l.t.Debounce - age)
		return nil
	}
	p, err := l.tree.print(f.rel)
	switch {
	case errors.Is(err, errUnsettled) || errors.Is(err, fs.ErrNotExist):
		l.again[f.rel] = l.now.Add(l.t.Debounce)
		return nil
	case err != nil:
		l.complain(key, fmt.Errorf("cannot read a watched file: %w", err))
		return nil
	}
	l.complain(key, nil)
	if (!known || p.Sum != old.Sum) && !l.own(p) {
		event := created
		if known {
			event = changed
		}
		if l.t.Batch {
			l.batch = append(l.batch, hit{f.rel, event, p})
			return nil
		}
		if err := l.t.fire(ctx, f.rel, event, p); err != nil {
			return err
		}
		l.unsent++
	}
	if p != old {
		l.t.seen[key], l.fresh = p, true
	}
	if l.unsent >= recordEvery {
		l.record()
	}
	return nil
}

// batchPatience is how many debounces a batch waits for files that are still
// being written.
const batchPatience = 20

// postpone delays a batch while other files are still changing: files that are
// written together must fire together.
func (l *look) postpone() {
	if len(l.batch) == 0 || len(l.again)+len(l.waiting) == 0 {
		return
	}
	for _, h := range l.batch {
		if l.now.Sub(changedAt(h.print)) > batchPatience*l.t.Debounce {
			return
		}
	}
	for _, h := range l.batch {
		l.again[h.rel] = l.now.Add(l.t.Debounce)
	}
	l.batch = nil
}

// changedAt returns when a file got its current state.
func changedAt(p sources.Print) time.Time {
	if p.Changed != 0 {
		return time.Unix(0, p.Changed) // which no touch(1) can set
	}
	return time.Unix(0, p.ModTime)
}

// own reports whether the agent made the file's last change.
func (l *look) own(p sources.Print) bool {
	return l.t.Own != nil && l.t.Own(changedAt(p))
}

// gone forgets a file, so that it fires when it comes back.
func (l *look) gone(ctx context.Context, key string) error {
	rel := undisplay(key)
	info, err := l.tree.root.Lstat(rel)
	if l.waiting[rel] || err == nil && info.Mode().IsRegular() && l.tree.matches(rel) {
		return nil
	}
	// The time of the removal is only known to within the debounce.
	own := l.t.Own != nil && (l.t.Own(l.now) || l.t.Own(l.now.Add(-l.t.Debounce)))
	if l.t.Removed && err != nil && !own { // without an error the patterns have changed
		abs := display(filepath.Join(l.t.Dir, filepath.FromSlash(rel)))
		if err := l.t.emit(ctx, key, display(path.Base(rel)), abs, removed, l.t.seen[key]); err != nil {
			return err
		}
	}
	delete(l.t.seen, key)
	delete(l.t.failed, key)
	l.fresh = true
	return nil
}

// record passes on what was seen.
func (l *look) record() {
	if l.fresh && l.t.Record != nil {
		l.t.Record(maps.Clone(l.t.seen))
	}
	l.fresh, l.unsent = false, 0
}

// complain reports an error about a path, unless the same error was just reported.
func (l *look) complain(key string, err error) {
	if err == nil {
		delete(l.t.failed, key)
		return
	}
	if l.t.failed[key] != err.Error() && l.t.Failed != nil {
		l.t.Failed(l.now, err, rescanEvery)
	}
	l.t.failed[key] = err.Error()
}
