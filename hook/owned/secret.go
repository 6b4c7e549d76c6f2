package owned

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// CheckSecret returns an *Error for an open file with a secret that somebody else can read
// or change. Besides what only its owner can read, it takes what root gives to a group that
// this user is in, as Kubernetes and systemd do, and in a container also what belongs to
// another user and is mounted read-only.
func CheckSecret(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mounted := inContainer() && isReadOnly(f)
	if err = owner(info); mounted {
		err = nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && err == nil {
		err = readers(info.Mode().Perm(), int(st.Uid), int(st.Gid), os.Getuid(), groups(), mounted)
	}
	if err == nil {
		err = writers(info)
	}
	return err
}

// isReadOnly reports whether a file is on a file system that is mounted read-only.
func isReadOnly(f *os.File) bool {
	var st syscall.Statfs_t
	return syscall.Fstatfs(int(f.Fd()), &st) == nil && st.Flags&1 != 0 // ST_RDONLY and MNT_RDONLY
}

// groups are those that this process is in.
func groups() []int {
	all, _ := os.Getgroups()
	return append(all, os.Getegid())
}

// readers says who else can read a file of an owner and a group, for a user in some groups.
// With mounted it is mounted read-only in a container, where its group has no other members.
func readers(mode fs.FileMode, uid, gid, me int, in []int, mounted bool) error {
	switch {
	case mode&0o007 != 0:
		return &Error{Why: fmt.Sprintf("others can read or write it (mode %04o)", mode), Fix: "chmod 600"}
	case mode&0o070 == 0 || alone(gid) || mounted:
		return nil
	case mode&0o030 != 0 || uid == me && me != 0:
		return &Error{Why: fmt.Sprintf("its group can read or write it (mode %04o, group %d)", mode, gid), Fix: "chmod 600"}
	case gid == 0 || slices.Contains(in, gid):
		return nil
	}
	return &Error{Why: fmt.Sprintf("a group that this user is not in can read it (mode %04o, group %d)", mode, gid), Fix: "chmod 600"}
}
