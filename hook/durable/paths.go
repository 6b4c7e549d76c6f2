package durable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Replace replaces the file at path; see Folder.Replace.
func Replace(path string, data []byte) error {
	return in(path, func(f *Folder, name string) error { return f.Replace(name, data) })
}

// Put replaces the file at path and syncs nothing; see Folder.Put.
func Put(path string, data []byte) error {
	return in(path, func(f *Folder, name string) error { return f.Put(name, data) })
}

// Read reads the file at path; see Folder.Read.
func Read(path string, limit int64) (data []byte, err error) {
	err = in(path, func(f *Folder, name string) error { data, err = f.Read(name, limit); return err })
	return data, err
}

// ChangedError means that a file is no longer what its writer has read.
type ChangedError struct{ Path string }

// Error names the file.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("cannot write %q: somebody else changed it meanwhile", e.Path)
}

// Hint says what to do.
func (e *ChangedError) Hint() string { return "it is left as they have it: type the command once more" }

// ReplaceIf is Replace for a file that others write, too: it keeps the file's permissions. If
// it is not what was read before any more, the error is a *ChangedError. What is written in the
// moment between that look and the replacement is lost.
func ReplaceIf(path string, before, after []byte) error {
	return in(path, func(f *Folder, name string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		switch now, err := f.Read(name, int64(len(before))); {
		case errors.Is(err, ErrTooLarge), err == nil && !bytes.Equal(now, before):
			return &ChangedError{path}
		case err != nil:
			return err
		}
		if err := f.SweepOf(name); err != nil {
			return err
		}
		return f.ReplaceAs(name, after, info.Mode().Perm())
	})
}

func in(path string, do func(f *Folder, name string) error) (err error) {
	f, err := Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return do(f, filepath.Base(path))
}
