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
	// Path is the file or folder, where the caller did not name it; else "".
	Path string
	// Why says who can, on one line.
	Why string
	// Fix is what to type, as the beginning of a command line that ends with the
	// path; "" if no command helps.
	Fix string
}

// Error returns Why, after the path.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Why
	}
	return e.Path + ": " + e.Why
}

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
func CheckPlace(path string) error { return checkPlace(path, keeps) }

// CheckTree is CheckPlace and Check for a folder, and Check for paths that lie in it, links
// followed: who can change one of them decides what is done there. What does not exist
// is left out. In a container folders of root that others can write count as this user's:
// volumes are mounted so, and no other user is there.
func CheckTree(dir string, below ...string) error {
	if err := checkPlace(dir, keepsHere); err != nil {
		return err
	}
	for _, path := range append([]string{dir}, below...) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !(info.IsDir() && mounted(info)) {
			err = Check(info)
		}
		if err != nil {
			return at(path, err)
		}
	}
	return nil
}

// CheckProgram returns an *Error for a program that somebody else can change: one that is
// named by its path from a folder has to be this user's or root's, another one only must
// not be one that others can write. A name without a slash is looked up in PATH, which is
// its user's matter.
func CheckProgram(dir, name string) error {
	check := writers
	if !filepath.IsAbs(name) {
		if !strings.Contains(name, "/") {
			return nil
		}
		name, check = filepath.Join(dir, name), Check
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil // the start says more
	}
	if err := check(info); err != nil {
		return at(name, err)
	}
	return nil
}

// at is an error with its path.
func at(path string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{path, e.Why, e.Fix}
	}
	return fmt.Errorf("%s: %w", path, err)
}

func keepsHere(dir fs.FileInfo) error {
	if mounted(dir) {
		return nil
	}
	return keeps(dir)
}

// mounted reports whether a folder may be a volume of the container that we are in.
func mounted(dir fs.FileInfo) bool {
	st, ok := dir.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && os.Getuid() != 0 && inContainer()
}

// inContainer reports whether this process does not see the machine's processes: only
// the first namespace of processes has this number (PROC_PID_INIT_INO in the kernel).
var inContainer = sync.OnceValue(func() bool {
	at, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && at != "pid:[4026531836]"
})

func checkPlace(path string, keeps func(fs.FileInfo) error) error {
	here, rest := "/", parts(path)
	for links := 0; len(rest) > 0; {
		dir, err := os.Lstat(here)
		if err != nil {
			return err
		}
		next := filepath.Join(here, rest[0])
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			info = nil
		} else if err != nil {
			return err
		}
		if err := keeps(dir); err != nil {
			return at(here, err)
		}
		if info == nil {
			return nil
		}
		if err := owner(info); err != nil {
			return at(next, err)
		}
		rest = rest[1:]
		if info.Mode().Type() != fs.ModeSymlink {
			here = next
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
			here = "/"
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
