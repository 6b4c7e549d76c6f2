package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/sources/poll"
)

const (
	// gitTime and gitNames bound what git may take to list the files, and what it may
	// print.
	gitTime  = 10 * time.Second
	gitNames = 8 << 20
	// maxRead is how much of all files is read, maxFile of how large a one: of others
	// the size and time count.
	maxRead = 64 << 20
	maxFile = 1 << 20
)

// listing is the command that lists the files that git knows or would add. It opens the
// index and ignore files, and neither runs nor fetches what the repository's
// configuration names: that is the agent's to write.
var listing = []string{
	"git", "--no-pager", "--no-optional-locks", "--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
	"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate",
}

// listed returns the digest of the contents of the files that are the agent's work by
// its own repository: not those that git ignores, such as what a build leaves; "" where
// git cannot tell.
func listed(ctx context.Context, dir *durable.Folder) string {
	if _, err := dir.Stat(".git"); err != nil {
		return "" // a repository above it may ignore the whole directory
	}
	out, err := poll.Exec(ctx, poll.Command{Argv: listing, Dir: dir.Path(), Timeout: gitTime, Most: gitNames, Env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0",
	}})
	if err != nil || out.Later {
		return ""
	}
	l := looker{ctx: ctx, sum: sha256.New()}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out.Stdout, []byte{0}), []byte{0}) {
		if l.n++; l.n > maxFiles || ctx.Err() != nil || l.named(dir.Root(), string(name)) != nil {
			return ""
		}
	}
	return "git-" + hex.EncodeToString(l.sum.Sum(nil)[:16])
}

// named adds one file that git has listed. One that is gone is a change, too.
func (l *looker) named(dir *os.Root, name string) error {
	if strings.HasPrefix(name, notLooked[0]+"/") {
		return nil
	}
	info, err := dir.Lstat(strings.TrimSuffix(name, "/"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		_, err = l.sum.Write([]byte(name + "\x00gone"))
		return err
	case err != nil:
		return err
	case info.IsDir(): // another repository
		sub, err := dir.OpenRoot(strings.TrimSuffix(name, "/") + "/.")
		if err != nil {
			return err
		}
		defer sub.Close()
		l.add(name, info)
		return l.folder(sub, name, 1)
	case !info.Mode().IsRegular() || info.Size() > maxFile || l.read+info.Size() > maxRead:
		l.add(name, info)
		return nil
	}
	l.read += info.Size()
	return l.content(dir, name, info)
}

// content adds a file's name, mode and content.
func (l *looker) content(dir *os.Root, name string, info fs.FileInfo) error {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() {
		return errors.Join(err, errors.New("it is another file by now"))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, maxFile)); err != nil {
		return err
	}
	_, err = l.sum.Write(append(append([]byte(name), 0, byte(info.Mode().Perm()>>6)), sum.Sum(nil)...))
	return err
}
