package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// ErrNotFolder means that a link, a FIFO or anything else is where a folder should
// be.
var ErrNotFolder = errors.New("it is not a folder")

// Open opens an existing directory, without waiting for a FIFO in its place.
// Links in path are followed, links inside the directory are not. It is for
// folders that nobody else changes; see OpenBelow.
func Open(path string) (*Folder, error) {
	// The dot is resolved in whatever is there: the kernel refuses anything but a
	// directory without opening it.
	root, err := os.OpenRoot(path + string(filepath.Separator) + ".")
	if err != nil {
		return nil, openFailed(path, err)
	}
	return &Folder{root: root, path: path}, nil
}

// Within runs do on the directory path, opened as by OpenBelow.
func Within(dir, path string, do func(f *Folder) error) error {
	f, err := OpenBelow(dir, path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing in it waits to be written
	return do(f)
}

// OpenBelow opens path, a directory at dir or below it, where others may change
// what is there: neither dir nor anything below it may be a link. A path elsewhere,
// or without a dir, is opened as by Open. An error matches ErrNotFolder or
// fs.ErrNotExist if that is the cause.
func OpenBelow(dir, path string) (*Folder, error) {
	names, below := split(dir, path)
	if !below {
		return Open(path)
	}
	return descend(dir, names, (*Folder).Sub)
}

// MakeBelow is OpenBelow for directories that are created (0700) if they are
// missing, except dir.
func MakeBelow(dir, path string) (*Folder, error) {
	names, below := split(dir, path)
	if !below {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make folder %q: %w", path, reason(err))
		}
		return Open(path)
	}
	return descend(dir, names, (*Folder).MakeSub)
}

// split returns the names on the way from dir to path; there may be none.
func split(dir, path string) (names []string, below bool) {
	rel, err := filepath.Rel(dir, path)
	switch {
	case dir == "" || err != nil || !filepath.IsLocal(rel):
		return nil, false
	case rel == ".":
		return nil, true
	}
	return strings.Split(rel, string(filepath.Separator)), true
}

func descend(dir string, names []string, step func(f *Folder, name string) (*Folder, error)) (*Folder, error) {
	folder, err := openReal(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		below, err := step(folder, name)
		if err = errors.Join(err, folder.Close()); err != nil {
			return nil, err
		}
		folder = below
	}
	return folder, nil
}

// openReal is Open for a directory that must not be reached by a link.
func openReal(path string) (*Folder, error) {
	named, err := os.Lstat(path)
	if err == nil {
		err = notFolder(named)
	}
	if err != nil {
		return nil, openFailed(path, err)
	}
	folder, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := folder.stands(named); err != nil {
		return nil, errors.Join(openFailed(path, err), folder.Close())
	}
	return folder, nil
}

// stands checks that a name, as Lstat described it, is the folder itself.
func (f *Folder) stands(named fs.FileInfo) error {
	opened, err := f.root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = ErrNotFolder
	}
	return err
}

// notRegular and notFolder say what a name is instead, if it exists.
func notRegular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%w but %s", ErrNotRegular, kind(info.Mode()))
}

func notFolder(info fs.FileInfo) error {
	if info.IsDir() {
		return nil
	}
	return fmt.Errorf("%w but %s", ErrNotFolder, kind(info.Mode()))
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

func openFailed(path string, err error) error {
	if err = reason(err); errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		err = ErrNotFolder
	}
	return fmt.Errorf("cannot open folder %q: %w", path, err)
}

// Sub opens a directory of the folder; a link to one is refused.
func (f *Folder) Sub(name string) (*Folder, error) {
	path := filepath.Join(f.path, name)
	named, err := f.root.Lstat(name)
	if err == nil {
		err = notFolder(named)
	}
	if err != nil {
		return nil, openFailed(path, err)
	}
	root, err := f.root.OpenRoot(name + "/.") // see Open
	if err != nil {
		return nil, openFailed(path, err)
	}
	sub := &Folder{root: root, path: path, Guard: f.Guard}
	if err := sub.stands(named); err != nil {
		return nil, errors.Join(openFailed(path, err), sub.Close())
	}
	return sub, nil
}

// MakeSub is Sub for a directory that is created (0700) if it is missing.
func (f *Folder) MakeSub(name string) (*Folder, error) {
	if err := f.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, f.fail("make folder", name, err)
	}
	return f.Sub(name)
}

// OpenFile opens the regular file at path, without waiting for a FIFO, without
// opening a device, and without following a link in its place; links before it
// are followed. New files get the mode 0600. See Folder.OpenFile.
func OpenFile(path string, flag int) (*os.File, error) {
	named, err := os.Lstat(path)
	if err == nil {
		err = notRegular(named)
	}
	if err != nil && !(flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("cannot open %q: %w", path, reason(err))
	}
	file, err := os.OpenFile(path, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", path, regular(reason(err)))
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("cannot open %q: %w", path, regular(err))
	}
	return file, nil
}

// regular says what is wrong with a file that was opened, or was not opened because
// it is a link or a folder.
func regular(err error) error {
	if err == nil || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENXIO) {
		return ErrNotRegular
	}
	return err
}

// lazy is a folder's own file, opened only if it is needed.
type lazy struct {
	once sync.Once
	file *os.File
	err  error
}

func (f *Folder) own() (*os.File, error) {
	f.self.once.Do(func() { f.self.file, f.self.err = f.root.Open(".") })
	return f.self.file, f.self.err
}

// Close releases the directory.
func (f *Folder) Close() error {
	f.self.once.Do(func() {})
	if f.self.file == nil {
		return f.root.Close()
	}
	return errors.Join(f.self.file.Close(), f.root.Close())
}
