package durable

import (
	"errors"
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

func in(path string, do func(f *Folder, name string) error) (err error) {
	f, err := Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return do(f, filepath.Base(path))
}
