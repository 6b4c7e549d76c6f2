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
	// maxHashed bounds what is read of one file.
	maxHashed = 64 << 20
	// maxEntries and maxDepth bound a scan: the agent may write what it likes
	// into its directory.
	maxEntries, maxDepth = 500_000, 64
)

var (
	errUnsettled = errors.New("the file changed while it was read")
	errTooMany   = fmt.Errorf("there are over %d files and directories; narrow the patterns", maxEntries)
)

// tree reads an agent's directory for one trigger. Nothing outside of it is
// read: symbolic links are neither followed nor matched.
type tree struct {
	root     *os.Root
	patterns []pattern
	entered  func(rel string) // called before a directory is listed; may be nil
	entries  int
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

// walk returns the matching files in the directory rel and below it, in no
// order. What vanishes while it looks is left out.
func (t *tree) walk(rel string) ([]found, error) {
	var files []found
	err := t.list(rel, 0, &files)
	return files, err
}

func (t *tree) list(rel string, depth int, files *[]found) error {
	if depth > maxDepth || !t.mayHold(rel) {
		return nil
	}
	if t.entered != nil {
		t.entered(rel)
	}
	// A FIFO that took the directory's place must not block us.
	dir, err := t.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer dir.Close()
	var below []string
	for {
		batch, err := dir.ReadDir(256)
		for _, e := range batch {
			if t.entries++; t.entries > maxEntries {
				return errTooMany
			}
			name := path.Join(rel, e.Name())
			switch {
			case e.IsDir():
				below = append(below, name)
			case e.Type().IsRegular() && t.matches(name):
				if info, err := t.root.Lstat(name); err == nil && info.Mode().IsRegular() {
					*files = append(*files, found{name, info})
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return ignoreGone(err)
		}
	}
	dir.Close() // so that depth costs no file descriptors
	for _, name := range below {
		if err := t.list(name, depth+1, files); err != nil {
			return err
		}
	}
	return nil
}

// ignoreGone forgives that a path is no longer a directory.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return err
}

// print reads a file's state. It returns errUnsettled when the file changed
// meanwhile and fs.ErrNotExist when it is no regular file any more.
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

// statPrint is a print without the sum.
func statPrint(info fs.FileInfo) sources.Print {
	return sources.Print{Size: info.Size(), ModTime: info.ModTime().UnixNano(), Changed: inodeChanged(info)}
}

// sameStat reports whether the file is as it was, as far as its inode tells.
func sameStat(info fs.FileInfo, p sources.Print) bool {
	p.Sum = ""
	return statPrint(info) == p
}
