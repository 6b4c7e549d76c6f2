package watch

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Folders calls changed with the path of a file in one of the folders
// whenever something happened to it, or with a folder's own path when it is
// not known what did: once when all are watched, and when the system lost
// count. It is a hint, to be checked against the
// file. It returns when ctx ends, or with an error where the system gives no
// notifications. changed must not block.
func Folders(ctx context.Context, folders []string, changed func(path string)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch folders: %w", err)
	}
	defer w.Close()
	for _, f := range folders {
		if err := w.Add(f); err != nil {
			return fmt.Errorf("cannot watch %q: %w", f, err)
		}
	}
	for _, f := range folders { // what happened before it was watched
		changed(f)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			if !ok {
				return nil
			}
			changed(filepath.Clean(e.Name))
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
