package watch

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// overflowDelay is how long after lost notifications all files are compared.
	overflowDelay = 100 * time.Millisecond
	// maxDirty is how many hints a trigger keeps; with more, all files are
	// compared.
	maxDirty = 1000
)

// hints turns the system's notifications into paths to check. It never calls
// fsnotify while it holds Watcher.mu: fsnotify may be waiting for drain.
type hints struct {
	w    *Watcher
	fs   *fsnotify.Watcher
	dirs map[string]map[*target]string // absolute directory → who asked → its relative path; guarded by w.mu
}

func newHints(w *Watcher) (*hints, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("cannot get notifications about files: %w", err)
	}
	return &hints{w: w, fs: watcher, dirs: map[string]map[*target]string{}}, nil
}

func (h *hints) close() { h.fs.Close() }

// watch asks for notifications about a directory. Asking again is harmless, and
// restores the notifications after the directory was recreated.
func (h *hints) watch(t *target, rel string) error {
	dir := filepath.Join(t.Dir, filepath.FromSlash(rel))
	h.w.mu.Lock()
	if t.removed {
		h.w.mu.Unlock()
		return nil
	}
	if h.dirs[dir] == nil {
		h.dirs[dir] = map[*target]string{}
	}
	h.dirs[dir][t] = rel
	h.w.mu.Unlock()
	err := h.fs.Add(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, fsnotify.ErrClosed) {
		return nil
	}
	return err
}

// remove ends notifications about a directory, which may be gone already.
func (h *hints) remove(dir string) { _ = h.fs.Remove(dir) }

// dropLocked forgets t and returns the directories that no trigger needs any more.
func (h *hints) dropLocked(t *target) (unused []string) {
	for dir, who := range h.dirs {
		delete(who, t)
		if len(who) == 0 {
			delete(h.dirs, dir)
			unused = append(unused, dir)
		}
	}
	return unused
}

// drain reads notifications as fast as they come, until close.
func (h *hints) drain() {
	for {
		select {
		case ev, ok := <-h.fs.Events:
			if !ok {
				return
			}
			h.event(ev)
		case _, ok := <-h.fs.Errors: // an overflow, or worse: something was lost
			if !ok {
				return
			}
			h.lost()
		}
	}
}

// lost makes all triggers compare everything.
func (h *hints) lost() {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for _, t := range h.w.targets {
		t.rescan = earlier(t.rescan, time.Now().Add(overflowDelay))
	}
	h.w.notify()
}

func (h *hints) event(ev fsnotify.Event) {
	if ev.Op == fsnotify.Chmod {
		return // no content
	}
	isDir := false
	if ev.Has(fsnotify.Create) {
		info, err := os.Lstat(ev.Name)
		isDir = err == nil && info.IsDir()
	}
	var unused []string
	h.w.mu.Lock()
	now := time.Now()
	if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
		unused = h.goneLocked(ev.Name, now)
	}
	for t, rel := range h.dirs[filepath.Dir(ev.Name)] {
		name, tr := path.Join(rel, filepath.Base(ev.Name)), tree{patterns: t.patterns}
		switch {
		case isDir && tr.mayHold(name):
			t.hintLocked(name, now) // list it before more happens in it
		case tr.matches(name):
			t.hintLocked(name, now.Add(t.Debounce))
		default:
			continue
		}
		if !t.busy && t.next().Before(h.w.wake) {
			h.w.notify()
		}
	}
	h.w.mu.Unlock()
	for _, dir := range unused {
		h.remove(dir)
	}
}

// hintLocked records that rel must be checked.
func (t *target) hintLocked(rel string, at time.Time) {
	if _, ok := t.dirty[rel]; !ok && len(t.dirty) >= maxDirty {
		t.rescan = earlier(t.rescan, at)
		return
	}
	t.dirty[rel] = at
}

// goneLocked forgets a directory that was removed or moved away, and everything in
// it: notifications about a moved directory would come under its old name.
func (h *hints) goneLocked(name string, now time.Time) (unused []string) {
	if h.dirs[name] == nil {
		return nil
	}
	for dir, who := range h.dirs {
		if dir != name && !strings.HasPrefix(dir, name+string(filepath.Separator)) {
			continue
		}
		for t := range who {
			t.rescan = earlier(t.rescan, now.Add(t.Debounce))
		}
		delete(h.dirs, dir)
		unused = append(unused, dir)
	}
	h.w.notify()
	return unused
}
