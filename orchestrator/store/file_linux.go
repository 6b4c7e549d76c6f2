package store

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"heartbeat/hook/flock"
)

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
