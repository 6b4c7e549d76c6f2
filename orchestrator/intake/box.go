package intake

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/volume"
)

// takenName is the folder beside an inbox to which its files are moved.
const takenName = "taken"

// Why a file stays at the inbox's name.
var (
	errNoExchange = errors.New("its file system cannot exchange two files")
	// errUnfinished means that a writer was in the midst of the last line: the file stands where
	// it stood.
	errUnfinished = errors.New("its last line is being written")
)

// box is an inbox that is open: the folder, and what it holds.
type box struct {
	place Place
	key   string // the inbox, as the table names it
	name  string // of the file, in dir: a link is resolved
	dir   *durable.Folder
	// taken is the folder of what was moved; nil: there is none, or obstacle says why it cannot
	// be used.
	taken    *durable.Folder
	obstacle error
	// dangling is true if the inbox is a link to nothing.
	dangling bool
	moved    int // files in the folder taken
}

// open opens the folder of an inbox; nil: there is none.
func open(p Place) (*box, error) {
	dir, err := durable.OpenBelow(p.Dir, filepath.Dir(p.Inbox))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &box{place: p, key: p.Inbox, name: filepath.Base(p.Inbox), dir: dir}
	if rel, err := filepath.Rel(p.Dir, p.Inbox); err == nil && filepath.IsLocal(rel) {
		b.key = rel // a directory may move
	}
	if err := b.resolve(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	b.taken, err = dir.Sub(takenName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.obstacle = err
	}
	return b, nil
}

func (b *box) close() {
	b.dir.Close()
	if b.taken != nil {
		b.taken.Close()
	}
}

// resolve follows a link from the inbox to a file of its folder.
func (b *box) resolve() error {
	info, err := b.dir.Stat(b.name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	target, err := filepath.EvalSymlinks(b.place.Inbox)
	if errors.Is(err, fs.ErrNotExist) {
		b.dangling = true // whoever appends makes it
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot follow the link %q: %w", b.place.Inbox, err)
	}
	folder, err := os.Lstat(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("cannot follow the link %q: %w", b.place.Inbox, err)
	}
	if own, err := b.dir.Stat("."); err != nil || !os.SameFile(own, folder) {
		return fmt.Errorf("%q is a link into another folder (%q)", b.place.Inbox, target)
	}
	b.name = filepath.Base(target)
	return nil
}

// old returns which files are there by which earlier versions knew how far an inbox was done.
func (b *box) old() (names []string) {
	for _, name := range []string{".inbox-offset", ".inbox-meta", ".in-flight", ".urgent-offset", ".urgent-meta", ".urgent-in-flight"} {
		if _, err := b.dir.Stat(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// found is a file in the folder taken.
type found struct {
	n int64
	facts
}

// fileName is what the n-th file is called there: two inboxes may share a folder.
func (b *box) fileName(n int64) string {
	return filepath.Base(b.place.Inbox) + "." + strconv.FormatInt(n, 10)
}

// mostAhead is how much larger the number of a file may be than those in the store: others
// may have made a file of any name.
const mostAhead = 1 << 20

// list returns the files in the folder taken, in their order; whole is false if there are more
// than are read. Numbers beyond last are not ours.
func (b *box) list(last int64) (all []found, whole bool, err error) {
	if b.taken == nil {
		return nil, b.obstacle == nil, nil
	}
	entries, err := b.taken.Entries()
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), filepath.Base(b.place.Inbox)+".")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !ours || err != nil || n < 1 || n > last+mostAhead || b.fileName(n) != e.Name() {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		all = append(all, found{n, factsOf(info)})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.n, b.n) })
	b.moved = len(all)
	return all, len(entries) < durable.MaxEntries, nil
}

func factsOf(info fs.FileInfo) facts {
	f := facts{size: info.Size(), modified: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		f.device, f.inode = int64(stat.Dev), int64(stat.Ino) //nolint:gosec // they are only compared
	}
	return f
}

// seenOf is the hash of the first and the last 4 KiB before an offset of a file.
func seenOf(file io.ReaderAt, size int64) (string, error) {
	const each = 4 << 10
	hash := sha256.New()
	for _, from := range []int64{0, max(0, size-each)} {
		if _, err := io.Copy(hash, io.NewSectionReader(file, from, min(each, size-from))); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// endsWhole reports whether the byte before an offset is a newline.
func endsWhole(file io.ReaderAt, size int64) bool {
	var last [1]byte
	n, _ := file.ReadAt(last[:], size-1)
	return n == 1 && last[0] == '\n'
}

// move puts an empty file of the same mode and owner at the inbox's name, and moves file, which
// stands there, to the folder taken as number n; in one step where the file system can. The last
// line must be whole, unless it is given up.
func (b *box) move(file *os.File, n int64, givenUp bool) (err error) {
	if b.obstacle != nil {
		return b.obstacle
	}
	if b.moved >= mostMoved {
		return fmt.Errorf("%d files that were taken in are still there", b.moved)
	}
	if v, err := volume.Of(b.dir.Path()); err == nil && v.Network != "" {
		return fmt.Errorf("it is on another machine's file system (%s)", v.Network)
	}
	if b.taken == nil {
		if b.taken, err = b.dir.MakeSub(takenName); err != nil {
			return err
		}
	}
	name := b.fileName(n)
	if err := b.makeLike(b.taken, name, file); err != nil {
		return err
	}
	here, err := b.dir.Root().Open(".")
	if err != nil {
		return errors.Join(err, b.taken.Remove(name))
	}
	defer here.Close()
	there, err := b.taken.Root().Open(".")
	if err != nil {
		return errors.Join(err, b.taken.Remove(name))
	}
	defer there.Close()
	err = exchange(here, b.name, there, name)
	if errors.Is(err, errNoExchange) {
		return b.moveInTwo(file, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot exchange %q: %w", b.place.Inbox, err), b.taken.Remove(name))
	}
	if givenUp || b.isWhole(name) {
		return nil
	}
	// Somebody began a line in between, and opens the name once more to end it.
	if err := exchange(here, b.name, there, name); err != nil {
		return nil //nolint:nilerr // the line is taken when nobody writes it any more
	}
	return errUnfinished
}

// moveInTwo is move where two files cannot change places: between the steps there is no inbox,
// and whoever appends makes one.
func (b *box) moveInTwo(file *os.File, name string) error {
	if err := b.dir.Root().Rename(b.name, filepath.Join(takenName, name)); err != nil {
		return errors.Join(fmt.Errorf("cannot move %q: %w", b.place.Inbox, err), b.taken.Remove(name))
	}
	if err := b.makeLike(b.dir, b.name, file); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil //nolint:nilerr // whoever appends makes it
	}
	return nil
}

// makeLike makes an empty file that those can use who can use another one.
func (b *box) makeLike(in *durable.Folder, name string, other *os.File) error {
	info, err := other.Stat()
	if err != nil {
		return err
	}
	file, err := in.Root().OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	mine, err := file.Stat()
	if err == nil {
		theirs, is := info.Sys().(*syscall.Stat_t)
		if own, ok := mine.Sys().(*syscall.Stat_t); is && ok && (own.Uid != theirs.Uid || own.Gid != theirs.Gid) {
			err = file.Chown(int(theirs.Uid), int(theirs.Gid))
		}
	}
	if err == nil {
		err = shareAs(file, other)
	}
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if err != nil {
		return errors.Join(err, in.Remove(name))
	}
	return nil
}

// isWhole reports whether the last line of a file in the folder taken has its newline.
func (b *box) isWhole(name string) bool {
	file, err := b.taken.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return true // its reader says why
	}
	defer file.Close()
	info, err := file.Stat()
	return err != nil || info.Size() == 0 || endsWhole(file, info.Size())
}

// What is kept of lines that are too long.
const (
	largeName = "too-large-"
	mostLarge = 8 // files
)

// keepLarge keeps the beginning of a line that is too long beside the inbox of its agent, and
// returns the file's path below the agent's directory.
func (b *box) keepLarge(raw []byte, now time.Time) (string, error) {
	const home = ".heartbeat"
	dir, err := durable.MakeBelow(b.place.Dir, filepath.Join(b.place.Dir, home))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	stem := largeName + now.UTC().Format("20060102T150405.000Z")
	name := stem + ".txt"
	for i := 2; ; i++ {
		if _, err := dir.Stat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if i > 1000 {
			return "", fmt.Errorf("cannot keep it as %q: the name is taken", name)
		}
		name = fmt.Sprintf("%s-%04d.txt", stem, i)
	}
	if err := dir.Replace(name, bytes.TrimRight(raw, "\x00")); err != nil {
		return "", err
	}
	if err := dir.Thin(largeName, mostLarge); err != nil {
		return "", err
	}
	return filepath.Join(home, name), nil
}
