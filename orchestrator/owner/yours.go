package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/config"
	"heartbeat/hook/settings"
)

// NotYoursError means that this user may write into no directory of a fleet's agents, as
// in somebody else's checkout: nothing can be queued there.
type NotYoursError struct {
	Dir, Owner, File string
	err              error
}

// Error names one of the directories.
func (e *NotYoursError) Error() string {
	return fmt.Sprintf("cannot write into the agents' directories: %q belongs to %s: %v", e.Dir, e.Owner, e.err)
}

// Hint says how to get some that are the user's own.
func (e *NotYoursError) Hint() string {
	from := filepath.Dir(e.File)
	to := "~/" + settings.Quote(filepath.Base(from))
	return "if it is yours, sudo chown -R $(id -un) " + settings.Quote(e.Dir) +
		"; otherwise cp -r " + settings.Quote(from) + " " + to + ", then the same with -f " + to + "/" + settings.Quote(filepath.Base(e.File))
}

// CheckYours returns a *NotYoursError if this user may write into none of the agents'
// directories. If they may write into one, it returns nil: agents whose directory they may not
// write into are held one by one.
func CheckYours(f *config.Fleet, agents []*config.Agent) error {
	var first *NotYoursError
	for _, a := range agents {
		dir := existing(a.Dir)
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EROFS) {
			return nil
		}
		if first == nil {
			first = &NotYoursError{Dir: dir, Owner: ownerOf(dir), File: f.Path, err: err}
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// existing is a directory, or the nearest one above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// ownerOf names the user whom a file belongs to.
func ownerOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "nobody knows whom"
	}
	id := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}
