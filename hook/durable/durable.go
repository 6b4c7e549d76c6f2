// Package durable replaces and extends files so that a crash or a power cut leaves
// either the old or the new content, and a nil error means that the new content is
// on disk.
//
// Replacing is: a new file with a unique name in the same folder (O_EXCL, 0600),
// write, fsync, close, rename, fsync of the folder. Extending is: open O_APPEND,
// one write(2) that writes everything or nothing, fdatasync, and an fsync of the
// folder if the file is new. Nothing follows a symbolic link or touches anything
// but regular files.
//
// A failed fsync is never repeated: after it the kernel counts the pages as clean,
// and the next fsync would succeed without having written them.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrTooLarge means that a file is larger than its reader allows.
var ErrTooLarge = errors.New("the file is too large")

// ErrNotRegular means that a name is a symbolic link, a directory, a FIFO or
// anything else that is not a plain file.
var ErrNotRegular = errors.New("it is not a regular file")

// Verb is a kind of step that changes the disk.
type Verb string

// The steps.
const (
	Create     Verb = "create"      // a new file under a temporary name, or one to extend
	Write      Verb = "write"       // bytes into it
	Sync       Verb = "sync"        // fsync or fdatasync of a file
	Rename     Verb = "rename"      // onto its name
	Remove     Verb = "remove"      // of a name
	SyncFolder Verb = "sync-folder" // fsync of the folder
)

// Step is one operation that changes the disk.
type Step struct {
	Verb Verb
	Name string // the file's final name; "" for the folder
	Data []byte // what a Write writes
}

// Folder is an open directory in which files are replaced and extended. It
// may be used by several goroutines at once.
type Folder struct {
	root *os.Root
	self lazy // to sync it
	path string
	// Guard, if set, runs each step in place of the folder: it may run it or not,
	// and may return an error either way. Tests use it to fail and stop steps.
	Guard func(s Step, run func() error) error
}

// Path is the path that the folder was opened with.
func (f *Folder) Path() string { return f.path }

// Root is the directory, for callers that read a whole tree. It is closed with the
// folder.
func (f *Folder) Root() *os.Root { return f.root }

// Do runs one step, through Guard if there is one. It is for callers that change a
// file that they opened themselves.
func (f *Folder) Do(s Step, run func() error) error {
	if f.Guard != nil {
		return f.Guard(s, run)
	}
	return run()
}

// Replace replaces a file. When it returns nil, the new content is on disk.
func (f *Folder) Replace(name string, data []byte) error {
	if err := f.Swap(name, data); err != nil {
		return err
	}
	return f.Sync()
}

// ReplaceAs is Replace for a file that others may use too: under its name it never
// has another mode.
func (f *Folder) ReplaceAs(name string, data []byte, mode fs.FileMode) error {
	if err := f.replaceWith(name, true, mode, data); err != nil {
		return err
	}
	return f.Sync()
}

// Swap is Replace without the folder's fsync: after a power cut the name has
// the whole old or the whole new content.
func (f *Folder) Swap(name string, data []byte) error {
	return f.replaceWith(name, true, private, data)
}

// Put replaces a file and syncs nothing: a reader sees the whole old or the whole
// new content; after a power cut there may be neither.
func (f *Folder) Put(name string, data []byte) error {
	return f.replaceWith(name, false, private, data)
}

// ReplaceFunc is Swap (synced) or Put (not synced) of what write writes.
func (f *Folder) ReplaceFunc(name string, synced bool, write func(io.Writer) error) error {
	return f.replace(name, synced, private, write)
}

// private is the mode of a file that only its owner may use.
const private = 0o600

// sweeps is how many times in a row a write that is in progress may be swept.
const sweeps = 3

// replaceWith begins again where somebody has swept its temporary file meanwhile
// (SweepOf).
func (f *Folder) replaceWith(name string, synced bool, mode fs.FileMode, data []byte) (err error) {
	for range 1 + sweeps {
		err = f.replace(name, synced, mode, func(w io.Writer) error { _, err := w.Write(data); return err })
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (f *Folder) replace(name string, synced bool, mode fs.FileMode, write func(io.Writer) error) (err error) {
	temp := tempName(name)
	var file *os.File
	err = f.Do(Step{Verb: Create, Name: name}, func() (err error) {
		file, err = f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		if file != nil {
			file.Close()
		}
		return f.fail("replace", name, err)
	}
	if mode != private {
		write = as(file, mode, write)
	}
	if err = f.fill(file, name, synced, write); err == nil {
		err = f.Do(Step{Verb: Rename, Name: name}, func() error { return f.root.Rename(temp, name) })
	}
	if err != nil {
		_ = f.Do(Step{Verb: Remove, Name: temp}, func() error { return f.root.Remove(temp) })
		return f.fail("replace", name, err)
	}
	return nil
}

// as sets the mode of a file before it is written.
func as(file *os.File, mode fs.FileMode, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		if err := file.Chmod(mode); err != nil {
			return err
		}
		return write(w)
	}
}

func (f *Folder) fill(file *os.File, name string, synced bool, write func(io.Writer) error) (err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := write(stepWriter{f, file, name}); err != nil {
		return err
	}
	if !synced {
		return nil
	}
	return f.Do(Step{Verb: Sync, Name: name}, file.Sync)
}

// stepWriter turns each write into a step.
type stepWriter struct {
	folder *Folder
	file   *os.File
	name   string
}

func (w stepWriter) Write(p []byte) (n int, err error) {
	err = w.folder.Do(Step{Verb: Write, Name: w.name, Data: p}, func() error {
		n, err = w.file.Write(p)
		return err
	})
	return n, err
}

// Append adds data, which should be whole lines, to the end of a file and creates
// the file if it is missing. If the file does not end with a newline, Append adds
// one first, so that a torn record spoils no other. When it returns nil, the data
// is on disk.
func (f *Folder) Append(name string, data []byte) (err error) {
	file, created, err := f.openToAppend(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = f.Extend(file, name, data)
	if err == nil {
		err = f.SyncData(file, name)
	}
	if err != nil {
		return f.fail("extend", name, err)
	}
	if created {
		return f.Sync()
	}
	return nil
}

// Extend is Append for a file of the folder that is open for reading and appending,
// without the syncs: everything with one write(2), or, if that fails, nothing; see
// WriteWhole.
func (f *Folder) Extend(file *os.File, name string, data []byte) error {
	torn, err := Unterminated(file)
	if err != nil {
		return err
	}
	if torn {
		data = append([]byte{'\n'}, data...)
	}
	return f.Do(Step{Verb: Write, Name: name, Data: data}, func() error { return WriteWhole(file, data) })
}

func (f *Folder) openToAppend(name string) (file *os.File, created bool, err error) {
	file, err = f.OpenFile(name, os.O_RDWR|os.O_APPEND)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, false, err
	}
	err = f.Do(Step{Verb: Create, Name: name}, func() (err error) {
		file, err = f.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
		return err
	})
	return file, true, err
}

// Unterminated reports whether a file has content that does not end with a
// newline.
func Unterminated(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// SyncData writes a file's content, and as much of its metadata as is needed to
// read it back, to the disk. Name is for messages.
func (f *Folder) SyncData(file *os.File, name string) error {
	err := f.Do(Step{Verb: Sync, Name: name}, func() error { return fdatasync(file) })
	if err != nil {
		return f.fail("sync", name, err)
	}
	return nil
}

// Touch creates an empty file if the name is free.
func (f *Folder) Touch(name string) error {
	err := f.Do(Step{Verb: Create, Name: name}, func() error {
		file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return f.fail("create", name, err)
	}
	return nil
}

// Remove removes a name; one that is missing is no error.
func (f *Folder) Remove(name string) error {
	err := f.Do(Step{Verb: Remove, Name: name}, func() error { return f.root.Remove(name) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.fail("remove", name, err)
	}
	return nil
}

// Rename gives a file of the folder another name in it, and replaces what has that
// name. The folder is not synced.
func (f *Folder) Rename(name, to string) error {
	err := f.Do(Step{Verb: Rename, Name: name}, func() error { return f.root.Rename(name, to) })
	if err != nil {
		return f.fail("rename", name, err)
	}
	return nil
}

// Link gives a file of the folder one more name in it: that name still leads to it
// when another file has taken its place. The folder is not synced, and a name that is
// taken is an error.
func (f *Folder) Link(name, to string) error {
	err := f.Do(Step{Verb: Create, Name: to}, func() error { return f.root.Link(name, to) })
	if err != nil {
		return f.fail("link", name, err)
	}
	return nil
}

// Sync writes the folder's names to the disk.
func (f *Folder) Sync() error {
	self, err := f.own()
	if err == nil {
		err = f.Do(Step{Verb: SyncFolder}, self.Sync)
	}
	if err != nil {
		return fmt.Errorf("cannot sync folder %q: %w", f.path, reason(err))
	}
	return nil
}

func (f *Folder) fail(verb, name string, err error) error {
	return fmt.Errorf("cannot %s %q: %w", verb, filepath.Join(f.path, name), reason(err))
}

// reason removes the path from an error whose message names it already.
func reason(err error) error {
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}
