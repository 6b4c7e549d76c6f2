package store

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"heartbeat/hook/flock"
)

// networks are the magic numbers of file systems that other machines can write, or that do
// as a program says (statfs(2)).
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB", unix.SMB_SUPER_MAGIC: "SMB",
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.V9FS_MAGIC: "9P", unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS",
	unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph", unix.OCFS2_SUPER_MAGIC: "OCFS2",
}

// network names the kind of network file system that a folder is on; "": none.
func network(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return networks[int64(uint32(st.Type))], nil //nolint:unconvert // its type differs
}

// readOnly reports whether a folder's file system is mounted so, or was made so by the
// system after an error.
func readOnly(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// roomIn is how many bytes are free for this user where a folder is, and whether that is no
// file system in memory.
func roomIn(dir string) (free uint64, onDisk bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), st.Type != unix.TMPFS_MAGIC
}

// lockedBy are the processes that have a part of the index of a store's log locked, as far as
// the system tells.
func lockedBy(path string, of span) []int { return flock.Lockers(path+"-shm", of.from, of.to) }

// programOf names the program of a process; "": not known.
func programOf(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(name))
}

// born is when a file was made; 0: not known.
func born(path string) int64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// machineID is the machine's id (machine-id(5)); "": it has none.
func machineID() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}
