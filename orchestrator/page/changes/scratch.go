package changes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
)

// mostIndex bounds the index that is copied: a million files.
const mostIndex = 256 << 20

// scratchName is what scratch folders are called. One is used for less than staleAfter,
// and Sweep removes at most mostStale of them.
const (
	scratchName = "diff-"
	staleAfter  = time.Hour
	mostStale   = 1000
)

// Sweep removes what a run that was killed has left below a parent of scratch folders.
func Sweep(parent string, now time.Time) error {
	names, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("cannot remove old folders of comparisons: %w", err)
	}
	var failed []error
	for n := 0; len(names) > 0 && n < mostStale; names = names[1:] {
		info, err := names[0].Info()
		if err != nil || !info.IsDir() || !strings.HasPrefix(info.Name(), scratchName) || now.Sub(info.ModTime()).Abs() < staleAfter {
			continue
		}
		n++
		failed = append(failed, os.RemoveAll(filepath.Join(parent, info.Name())))
	}
	return errors.Join(failed...)
}

// scratch makes a repository of our own in a new folder below parent: with the index and
// the commit of r, whose objects it reads and in which nothing is written.
func (r *repository) scratch(parent string) (path string, err error) {
	path, err = os.MkdirTemp(parent, scratchName)
	if err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}()
	head := r.commit
	if head == "" {
		head = "ref: refs/heads/none"
	}
	for _, name := range []string{"refs", "objects/info", "info"} {
		if err := os.MkdirAll(filepath.Join(path, name), 0o700); err != nil {
			return "", err
		}
	}
	for name, text := range map[string]string{"HEAD": head + "\n", "config": r.config(), "objects/info/alternates": r.objects + "\n"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return path, r.copies(path)
}

// copies copies what is used of the repository's own folder.
func (r *repository) copies(to string) error {
	git, err := durable.OpenBelow(r.git, r.git)
	if err != nil {
		return err
	}
	defer git.Close()
	if err := copyFile(git, "index", filepath.Join(to, "index"), mostIndex); err != nil {
		return err
	}
	entries, err := git.Entries()
	if err != nil {
		return err
	}
	shared := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") && shared < 4 {
			shared++
			if err := copyFile(git, e.Name(), filepath.Join(to, e.Name()), mostIndex); err != nil {
				return err
			}
		}
	}
	common, err := durable.OpenBelow(r.common, r.common)
	if err != nil {
		return err
	}
	defer common.Close()
	return copyFile(common, filepath.Join("info", "exclude"), filepath.Join(to, "info", "exclude"), mostExclude)
}

// copyFile copies a file, if there is one, and its time, by which git knows whether
// another file may have changed since.
func copyFile(folder *durable.Folder, name, to string, most int64) (err error) {
	file, err := folder.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > most {
		return fmt.Errorf("cannot copy %s of the repository: %w", name, durable.ErrTooLarge)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime())) }()
	_, err = io.Copy(out, io.LimitReader(file, most))
	return err
}
