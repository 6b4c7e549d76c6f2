// Package owned reports whether anybody but this user and root can change a file,
// or put another one in its place. It checks owners and permissions, but no access
// control lists.
package owned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Error means that somebody else can change a file or folder.
type Error struct {
	// Why says who can, on one line.
	Why string
	// Fix is what to type, as the beginning of a command line that ends with the
	// path; "" if no command helps.
	Fix string
}

// Error returns Why.
func (e *Error) Error() string { return e.Why }

// Check returns an *Error for a file that does not belong to this user or root, or
// that others can write. A group that has only this user as its member, as systems
// with umask 002 give to each user, does not count as others.
func Check(info fs.FileInfo) error {
	if err := owner(info); err != nil {
		return err
	}
	return writers(info)
}

func owner(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is not known")
	}
	if uid := int(st.Uid); uid != 0 && uid != os.Getuid() && !unmapped(uid) {
		return &Error{Why: "it belongs to " + name(uid), Fix: "chown " + strconv.Itoa(os.Getuid())}
	}
	return nil
}

func writers(info fs.FileInfo) error {
	mode := info.Mode().Perm()
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("its group is not known")
	case mode&0o002 != 0:
		return &Error{Why: fmt.Sprintf("everybody can write it (mode %04o)", mode), Fix: "chmod go-w"}
	case mode&0o020 != 0 && !alone(int(st.Gid)):
		return &Error{Why: fmt.Sprintf("its group can write it (mode %04o, group %d)", mode, st.Gid), Fix: "chmod g-w"}
	}
	return nil
}

// mostLinks is how many links of a path are followed, as in the kernel.
const mostLinks = 40

// CheckPlace returns an error if somebody else can put another file or folder in
// place of the one that a path leads to, or of anything on the way: in a folder
// that others can write nothing is safe, except what belongs to us or root in a
// sticky folder. What does not exist yet belongs to nobody: check again when it
// exists.
func CheckPlace(path string) error {
	at, rest := "/", parts(path)
	for links := 0; len(rest) > 0; {
		dir, err := os.Lstat(at)
		if err != nil {
			return err
		}
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			info = nil
		} else if err != nil {
			return err
		}
		if err := keeps(dir); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if info == nil {
			return nil
		}
		if err := owner(info); err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		rest = rest[1:]
		if info.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > mostLinks {
			return fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(parts(target), rest...)
	}
	return nil
}

// keeps says why a folder does not protect its entries from being replaced.
func keeps(dir fs.FileInfo) error {
	if err := owner(dir); err != nil {
		return err
	}
	if dir.Mode()&fs.ModeSticky != 0 {
		return nil // only its owner can move it, and that one is checked
	}
	return writers(dir)
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func name(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("user %s (%d)", u.Username, uid)
	}
	return fmt.Sprintf("user %d", uid)
}

// alone reports whether a group is this user's own: it has their name and no other
// members.
func alone(gid int) bool {
	private.once.Do(func() { private.gid = privateGroup() })
	return gid == private.gid
}

var private struct {
	once sync.Once
	gid  int
}

// privateGroup returns this user's own group, or -1.
func privateGroup() int {
	u, err := user.Current()
	if err != nil {
		return -1
	}
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return -1
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return -1
	}
	return privateIn(u.Username, u.Gid, string(groups), string(users))
}

// privateIn reads lines of group(5) and passwd(5).
func privateIn(name, gid, groups, users string) int {
	found := false
	for line := range strings.Lines(groups) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != gid {
			continue
		}
		if f[0] != name || f[3] != "" && f[3] != name {
			return -1
		}
		found = true
	}
	for line := range strings.Lines(users) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) > 3 && f[3] == gid && f[0] != name {
			return -1
		}
	}
	n, err := strconv.Atoi(gid)
	if err != nil || !found {
		return -1
	}
	return n
}

// unmapped reports whether a user is one that a user namespace does not know: all
// of them, including root, look the same there (user_namespaces(7)).
func unmapped(uid int) bool {
	namespace.once.Do(func() {
		namespace.uid = -1
		users, err := os.ReadFile("/proc/self/uid_map")
		if err != nil {
			return
		}
		if f := strings.Fields(string(users)); len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295" {
			return // the machine's own
		}
		text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
		if n, e := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && e == nil {
			namespace.uid = n
		}
	})
	return uid == namespace.uid
}

var namespace struct {
	once sync.Once
	uid  int
}
