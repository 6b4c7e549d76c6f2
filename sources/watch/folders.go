package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// againEvery is how often a missing folder is looked for.
const againEvery = time.Second

// Folders calls changed with the path of a file in one of the folders whenever
// something happened to the file. It calls changed with a folder's own path when it
// does not know what changed: once when all folders are watched, when the system
// lost notifications, when the folder disappeared, and when it is back. A call is
// only a hint, so check the file. Folders returns when ctx ends, or with an error
// where the system provides no notifications. changed must not block.
func Folders(ctx context.Context, folders []string, changed func(path string)) error {
	return watchFolders(ctx, folders, againEvery, changed)
}

func watchFolders(ctx context.Context, folders []string, every time.Duration, changed func(path string)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch folders: %w", err)
	}
	defer w.Close()
	gone, err := add(w, folders)
	if err != nil {
		return err
	}
	watched := map[string]bool{}
	for _, f := range folders {
		watched[f] = true
		changed(f) // for what happened before it was watched
	}
	again := time.Tick(every)
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			if !ok {
				return nil
			}
			path := filepath.Clean(e.Name)
			if e.Has(fsnotify.Remove|fsnotify.Rename) && watched[path] && !slices.Contains(gone, path) {
				_ = w.Remove(path) // it may be watched still, under a name that is another's now
				gone = append(gone, path)
			}
			changed(path)
		case <-again:
			before := gone
			if gone, err = add(w, before); err != nil {
				return err
			}
			for _, f := range before {
				if !slices.Contains(gone, f) {
					changed(f)
				}
			}
		case _, ok := <-w.Errors:
			if !ok {
				return nil
			}
			for _, f := range folders {
				changed(f)
			}
		}
	}
}

// add watches folders, and returns those that do not exist.
func add(w *fsnotify.Watcher, folders []string) (gone []string, err error) {
	for _, f := range folders {
		err := w.Add(f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			gone = append(gone, f)
		case err != nil:
			return nil, fmt.Errorf("cannot watch %q: %w", f, err)
		}
	}
	return gone, nil
}
