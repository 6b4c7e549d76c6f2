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
	began   time.Time
	full    bool
	hinted  map[string]time.Time // paths that hints named and that were left alone since → until when
	waiting map[string]time.Time // that hints named and that are not settled yet → when to look at them

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
		l.complain("/", l.missing())
		l.complain("", l.blind)
		l.complain(".", l.tree.denied.why("cannot be listed"))
		l.forgetGone(files)
	}
	for _, f := range byPath(files) {
		if err := l.file(ctx, f); err != nil {
			return err
		}
	}
	if err := l.fireBatch(ctx); err != nil {
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

// missingFor is how long a pattern's folder may not be there before that is told: it may be
// made later, or be misspelt.
const missingFor = time.Hour

// missing names a folder that a pattern is about and that was never there.
func (l *look) missing() error {
	for i := range l.t.patterns {
		base := l.t.patterns[i].base
		if _, err := l.tree.root.Lstat(base); !errors.Is(err, fs.ErrNotExist) {
			l.t.exist[base] = true
		}
		if !l.t.exist[base] && time.Since(l.t.began) >= missingFor {
			return fmt.Errorf("cannot watch %s: there is no such folder; make it, or correct the pattern %s", display(base), display(l.t.patterns[i].glob))
		}
	}
	return nil
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
			l.complain(display(rel), nil)
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
	case l.isHinted(rel):
		*gone = append(*gone, key)
	case !l.isWaiting(rel):
		l.afterDebounce(rel)
	}
}

func (l *look) isHinted(rel string) bool { _, ok := l.hinted[rel]; return ok }

func (l *look) isWaiting(rel string) bool { _, ok := l.waiting[rel]; return ok }

// afterDebounce looks at a file again after a debounce. It counts from now, because
// reaching the file may have taken this look longer than a debounce.
func (l *look) afterDebounce(rel string) { l.again[rel] = time.Now().Add(l.t.Debounce) }

// isUnsettled reports whether a file was changed at that time, within the debounce,
// and then looks at it again when it may have settled.
func (l *look) isUnsettled(rel string, changed time.Time) bool {
	age := time.Since(changed)
	if age < 0 || age >= l.t.Debounce {
		return false
	}
	l.again[rel] = time.Now().Add(l.t.Debounce - age)
	return true
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
	if l.isWaiting(f.rel) || known && !l.isHinted(f.rel) && sameStat(f.info, old) {
		return nil
	}
	if l.isUnsettled(f.rel, f.info.ModTime()) {
		return nil
	}
	p, err := l.tree.print(f.rel)
	switch {
	case errors.Is(err, errUnsettled) || errors.Is(err, fs.ErrNotExist):
		l.afterDebounce(f.rel)
		return nil
	case err != nil:
		l.complain(key, unreadable(f.rel, err))
		return nil
	case l.isUnsettled(f.rel, time.Unix(0, p.ModTime)): // changed since it was listed
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

// fireBatch fires for the files that have settled, unless they wait for others.
func (l *look) fireBatch(ctx context.Context) error {
	if len(l.again)+len(l.waiting) > 0 && l.hold() {
		return nil
	}
	l.t.heldSince = time.Time{}
	return l.t.fireBatch(ctx, l.batch, func(h hit) { l.t.seen[display(h.rel)], l.fresh = h.print, true })
}

// hold delays a batch until the files that are still changing may have settled,
// because files that are written together must fire together. All then have one
// time: with a time of its own for each, every file would always find another one
// waiting. It reports whether the batch waits.
func (l *look) hold() bool {
	if len(l.batch) == 0 {
		return true
	}
	now := time.Now()
	if l.t.heldSince.IsZero() {
		l.t.heldSince = now
	}
	if now.Sub(l.t.heldSince) > batchPatience*l.t.Debounce {
		return false
	}
	last := now
	for _, at := range l.again {
		last = later(last, at)
	}
	for _, at := range l.waiting {
		last = later(last, at)
	}
	for _, h := range l.batch {
		l.again[h.rel] = last
	}
	l.batch = nil
	return true
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
	if l.isWaiting(rel) || err == nil && info.Mode().IsRegular() && l.tree.matches(rel) {
		return nil
	}
	if err != nil && ignoreGone(err) != nil { // it cannot be seen, as below a directory that may not be read
		return nil
	}
	own := l.t.Own != nil && (l.t.Own(l.began) || l.t.Own(l.noticed(rel)))
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

// noticed returns when it was noticed that something happened to a file or to a
// directory above it, which it was about a debounce before it counted as settled.
func (l *look) noticed(rel string) time.Time {
	for at := rel; at != "."; at = path.Dir(at) {
		if settled, ok := l.hinted[at]; ok {
			return settled.Add(-l.t.Debounce)
		}
	}
	return l.began.Add(-l.t.Debounce)
}

// record passes on what was seen.
func (l *look) record() {
	if l.fresh && l.t.Record != nil {
		l.t.Record(maps.Clone(l.t.seen))
	}
	l.fresh, l.unsent = false, 0
}

// complain takes down why something cannot be watched; nil: it can.
func (l *look) complain(key string, err error) {
	if err == nil {
		delete(l.t.failed, key)
		return
	}
	l.t.failed[key] = err
}

// forgetGone forgets files that could not be read and are no longer there, by all that are.
func (l *look) forgetGone(files []found) {
	if len(l.t.failed) == 0 {
		return
	}
	there := map[string]bool{"": true, ".": true, "/": true}
	for _, f := range files {
		there[display(f.rel)] = true
	}
	maps.DeleteFunc(l.t.failed, func(key string, _ error) bool { return !there[key] })
}
