package watch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"heartbeat/sources"
)

const (
	// maxHashed bounds how much is read of one file.
	maxHashed = 64 << 20
	// maxEntries and maxDepth bound a scan: the agent may write anything into its
	// directory.
	maxEntries, maxDepth = 500_000, 64
)

var (
	errUnsettled = errors.New("the file changed while it was read")
	errTooMany   = fmt.Errorf("there are over %d files and directories; narrow the patterns", maxEntries)
)

// tree reads an agent's directory for one trigger. It reads nothing outside:
// symbolic links are neither followed nor matched.
type tree struct {
	root     *os.Root
	patterns []pattern
	entered  func(rel string) // called before a directory is listed; may be nil
	entries  int
	denied   denied // directories that may not be read; they are left out
}

// denied are things that may not be read: the first by its path, and how many there are.
type denied struct {
	rel string
	err error
	n   int
}

func (d *denied) add(rel string, err error) {
	if d.n++; d.err == nil || rel < d.rel {
		d.rel, d.err = rel, err
	}
}

// why names the first, and counts the others; nil: there are none.
func (d *denied) why(what string) error {
	if d.n < 2 {
		return d.err
	}
	return fmt.Errorf("%w; and %d more %s", d.err, d.n-1, what)
}

// found is a matching file.
type found struct {
	rel  string
	info fs.FileInfo
}

func (t *tree) matches(rel string) bool {
	for i := range t.patterns {
		if t.patterns[i].matches(rel) {
			return true
		}
	}
	return false
}

func (t *tree) mayHold(rel string) bool {
	for i := range t.patterns {
		if t.patterns[i].mayHold(rel) {
			return true
		}
	}
	return false
}

// walk returns the matching files in the directory rel and below it, in no order.
// It leaves out files that vanish meanwhile.
func (t *tree) walk(rel string) ([]found, error) {
	var files []found
	dir, err := openDir(t.root, rel)
	if err != nil {
		return nil, ignoreGone(err)
	}
	err = t.list(dir, rel, 0, &files)
	return files, err
}

// openDir opens only a directory: without the dot, a FIFO in its place would block
// us until somebody writes to it.
func openDir(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// list reads dir, which is at rel, and closes it. Each directory is a root of its
// own, so that a file's name needs no walk from the top.
func (t *tree) list(dir *os.Root, rel string, depth int, files *[]found) error {
	defer dir.Close()
	if !t.mayHold(rel) {
		return nil
	}
	if t.entered != nil {
		t.entered(rel)
	}
	below, err := t.entriesOf(dir, rel, files)
	if err != nil || depth == maxDepth {
		return err
	}
	for _, name := range below {
		sub, err := openDir(dir, name)
		if err == nil {
			err = t.list(sub, path.Join(rel, name), depth+1, files)
		}
		if errors.Is(err, fs.ErrPermission) {
			t.denied.add(path.Join(rel, name), fmt.Errorf("cannot list the watched directory %s: %w", display(path.Join(rel, name)), reason(err)))
			err = nil
		}
		if err := ignoreGone(err); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf adds dir's matching files and returns the names of subdirectories that
// may contain more.
func (t *tree) entriesOf(dir *os.Root, rel string, files *[]found) (below []string, err error) {
	list, err := dir.Open(".")
	if err != nil {
		return nil, ignoreGone(err)
	}
	defer list.Close()
	for {
		batch, err := list.ReadDir(256)
		for _, e := range batch {
			if t.entries++; t.entries > maxEntries {
				return nil, errTooMany
			}
			name := path.Join(rel, e.Name())
			switch {
			case e.IsDir() && t.mayHold(name):
				below = append(below, e.Name())
			case e.Type().IsRegular() && t.matches(name):
				if info, err := dir.Lstat(e.Name()); err == nil && info.Mode().IsRegular() {
					*files = append(*files, found{name, info})
				}
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return below, ignoreGone(err)
		}
	}
}

// ignoreGone ignores the error that a path is no longer a directory.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return err
}

// print reads a file's state. It returns errUnsettled when the file changed
// meanwhile and fs.ErrNotExist when it is no longer a regular file.
func (t *tree) print(rel string) (sources.Print, error) {
	f, err := t.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return sources.Print{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return sources.Print{}, err
	}
	if !before.Mode().IsRegular() {
		return sources.Print{}, fs.ErrNotExist
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
		return sources.Print{}, err
	}
	after, err := f.Stat()
	if err != nil {
		return sources.Print{}, err
	}
	p := statPrint(after)
	if p != statPrint(before) {
		return sources.Print{}, errUnsettled
	}
	if p.Size > maxHashed {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(p.Size)))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(p.ModTime)))
	}
	p.Sum = hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// statPrint returns a print without the sum.
func statPrint(info fs.FileInfo) sources.Print {
	return sources.Print{Size: info.Size(), ModTime: info.ModTime().UnixNano(), Changed: inodeChanged(info)}
}

// sameStat reports whether the file is unchanged, as far as its inode tells.
func sameStat(info fs.FileInfo, p sources.Print) bool {
	p.Sum = ""
	return statPrint(info) == p
}

// reason is an error about a path without the path.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
