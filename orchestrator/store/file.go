package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/hook/durable"
	"heartbeat/hook/owned"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/volume"
)

// file is which file a store is in.
type file struct {
	inode, born int64 // born: Unix time in nanoseconds, 0: the file system does not tell
	size        int64
}

// look looks at what stands at a store's name, without opening it.
func look(path string) (f file, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, ErrNone
	case err != nil:
		return f, fmt.Errorf("cannot look at the store: %w", err)
	case !info.Mode().IsRegular():
		return f, &RefusedError{path, "it is not a regular file", "move it away; then " + putBack}
	}
	if err := mayUse(path, info); err != nil {
		return f, err
	}
	for _, beside := range []string{path + "-wal", path + "-shm"} {
		if info, err := os.Lstat(beside); err == nil {
			if err := mayUse(beside, info); err != nil {
				return f, err
			}
		}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Nlink != 1 {
		return f, &RefusedError{path, "it has another name, too (a hard link), under which it would be another database", fmt.Sprintf("find the other name (find / -xdev -samefile %q), and remove it", path)}
	}
	if info.Size() == 0 {
		return f, &RefusedError{path, "it is empty", ""}
	}
	if err := mayHold(filepath.Dir(path)); err != nil {
		return f, err
	}
	f = file{size: info.Size(), born: born(path)}
	if ok {
		f.inode = int64(stat.Ino)
	}
	return f, nil
}

// mayUse says whether a file of the store is this user's to use.
func mayUse(path string, info fs.FileInfo) error {
	if err := owned.Check(info); err != nil {
		e := &RefusedError{path, err.Error(), ""}
		if who, is := errors.AsType[*owned.Error](err); is && who.Fix != "" {
			e.hint = fmt.Sprintf("%s %s*; run the fleet as one user only", who.Fix, settings.Quote(strings.TrimSuffix(strings.TrimSuffix(path, "-wal"), "-shm")))
		}
		return e
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); errors.Is(err, unix.EACCES) {
		return &RefusedError{path, fmt.Sprintf("this user may not write it (%s)", info.Mode()), fmt.Sprintf(`sudo chown "$(id -un)" %s*; run the fleet as one user only`, settings.Quote(filepath.Join(filepath.Dir(path), Name)))}
	}
	return nil
}

// stands reports what has become of a store's file since it was opened: nil, or a *LostError.
// SQLite itself goes on with a file that has no name any more, and says that all is well.
func (f file) stands(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it was removed")
	}
	if err == nil {
		stat, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case ok && int64(stat.Ino) != f.inode:
			err = errors.New("another file stands in its place")
		case info.Size() < f.size:
			err = errors.New("it was cut")
		}
	}
	if err != nil {
		return &LostError{path, err}
	}
	return nil
}

// beside is which files SQLite keeps beside an open store: its log and the index of the log. They
// are made by the first transaction, and stay as long as the store is open.
type beside struct{ log, index int64 } // inodes

// lookBeside looks at them.
func lookBeside(path string) beside { return beside{inodeOf(path + "-wal"), inodeOf(path + "-shm")} }

// inodeOf is the inode of what has a name; 0: nothing has.
func inodeOf(path string) int64 {
	if info, err := os.Lstat(path); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return int64(stat.Ino)
		}
	}
	return 0
}

// stands reports what has become of them: nil, or a *LogError. SQLite goes on writing to a log
// that has no name any more, where the next run finds nothing of it.
func (b beside) stands(path string) *LogError {
	is := lookBeside(path)
	switch {
	case is == b:
		return nil
	case is.log == 0 || is.index == 0:
		return &LogError{what: "was removed"}
	}
	return &LogError{what: "was replaced by another file"}
}

// mayHold says whether a database may be kept in a folder.
func mayHold(dir string) error {
	v, err := volume.Of(dir)
	if err != nil {
		return fmt.Errorf("cannot tell which file system %q is on: %w", dir, err)
	}
	return Suits(dir, v)
}

// Suits says whether a database may be kept in a folder on a volume: nil, or a *NetworkError.
func Suits(dir string, v volume.Volume) error {
	switch {
	case v.Network != "":
		return &NetworkError{Dir: dir, system: v.Network}
	case v.Fuse:
		return &NetworkError{Dir: dir, system: "FUSE"}
	}
	return nil
}

// isReadOnly reports whether a folder's file system is mounted so, or was made so by the
// system after an error.
func isReadOnly(dir string) bool {
	v, err := volume.Of(dir)
	return err == nil && v.ReadOnly
}

// NetworkError means that a folder is on a file system on which locks cannot be relied on.
type NetworkError struct{ Dir, system string }

// Error says which it is.
func (e *NetworkError) Error() string {
	return fmt.Sprintf("cannot keep a store in %q, which is on a network file system (%s): its locks cannot be relied on", e.Dir, e.system)
}

// Hint says what to do.
func (e *NetworkError) Hint() string {
	return "export HEARTBEAT_STATE_DIR=FOLDER, a folder on a disk of this machine, for all commands of the fleet"
}

// putInPlace gives a database, which nobody has open, its name, durably: the folders above it
// were perhaps made just now.
func putInPlace(unfinished, path string) error {
	if exists(unfinished + "-wal") {
		return fmt.Errorf("cannot put the store in its place: its log %q was not taken into it", unfinished+"-wal")
	}
	in, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("cannot put the store in its place: %w", err)
	}
	f, err := in.OpenFile(filepath.Base(unfinished), os.O_RDWR)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err == nil {
		err = in.Rename(filepath.Base(unfinished), filepath.Base(path))
	}
	if err == nil {
		err = in.Sync()
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return fmt.Errorf("cannot put the store in its place: %w", err)
	}
	for dir := filepath.Dir(filepath.Dir(path)); ; dir = filepath.Dir(dir) {
		above, err := durable.Open(dir)
		if err != nil { // one that cannot be read has not been made by us
			return nil
		}
		if err := errors.Join(above.Sync(), above.Close()); err != nil || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// discard removes a database that nobody has open, with what SQLite keeps beside it.
func discard(path string) error {
	var errs []error
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// begin makes an empty file that only its owner may read, in place of what a killed process
// left: SQLite would make one that others may read, and its log has the mode of the database.
func begin(path string) error {
	if err := discard(path); err != nil {
		return err
	}
	f, err := durable.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	return f.Close()
}
