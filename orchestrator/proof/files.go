package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"heartbeat/hook/durable"
)

const (
	// maxFiles is how many files and folders are looked at, maxDepth how deep.
	maxFiles = 50_000
	maxDepth = 64
)

// notLooked are folders that change without the agent's work.
var notLooked = []string{".heartbeat", ".git"}

var errTooMany = errors.New("there are too many files to look at")

// Files returns a digest of an agent's files: of the contents of those that the
// directory's own git repository knows or would add; without one, or where git cannot
// list them, of the sizes, times and kinds of all except .heartbeat and .git. It is ""
// where it cannot be told: there are over 50,000, or one cannot be looked at. No link is
// followed, and nothing in the directory is run or written.
func Files(ctx context.Context, dir string) string {
	f, err := durable.Open(dir)
	if err != nil {
		return ""
	}
	defer f.Close()
	if digest := listed(ctx, f); digest != "" {
		return digest
	}
	l := looker{ctx: ctx, sum: sha256.New()}
	if err := l.folder(f.Root(), "", 0); err != nil {
		return ""
	}
	return hex.EncodeToString(l.sum.Sum(nil)[:16])
}

type looker struct {
	ctx context.Context
	sum hash.Hash
	n   int
	// read is how much of the files was read.
	read int64
}

// folder adds what is in dir, which is at rel.
func (l *looker) folder(dir *os.Root, rel string, depth int) error {
	list, err := dir.Open(".")
	if err != nil {
		return err
	}
	entries, err := list.ReadDir(maxFiles + 1 - l.n)
	_ = list.Close()
	if err != nil && len(entries) > 0 || l.n+len(entries) > maxFiles || depth > maxDepth {
		return errTooMany
	}
	l.n += len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if rel == "" && slices.Contains(notLooked, e.Name()) {
			continue
		}
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if err := l.entry(dir, path.Join(rel, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one file or folder. A folder's own time says nothing that its files do
// not say.
func (l *looker) entry(dir *os.Root, rel string, e fs.DirEntry, depth int) error {
	info, err := dir.Lstat(e.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l.add(rel, info)
	if !info.IsDir() {
		return nil
	}
	sub, err := dir.OpenRoot(e.Name() + "/.") // the dot: of a FIFO in its place nothing is opened
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	return l.folder(sub, rel, depth+1)
}

func (l *looker) add(rel string, info fs.FileInfo) {
	var b []byte
	b = append(append(b, rel...), 0)
	b = binary.BigEndian.AppendUint32(b, uint32(info.Mode()))
	if !info.IsDir() {
		b = binary.BigEndian.AppendUint64(b, uint64(info.Size()))
		b = binary.BigEndian.AppendUint64(b, uint64(info.ModTime().UnixNano()))
	}
	l.sum.Write(b)
}
