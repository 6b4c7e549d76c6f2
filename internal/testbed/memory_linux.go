package testbed

import "syscall"

const (
	// memory is the folder of shm_overview(7).
	memory = "/dev/shm"
	// enough is what has to be free there: containers are often given 64 MB.
	enough = 2 << 30
	noExec = 8 // ST_NOEXEC (statfs(2))
)

// memoryIsFree reports whether folders in memory have room for the tests, and
// whether programs can be run from there.
func memoryIsFree() bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(memory, &fs) == nil && fs.Flags&noExec == 0 && fs.Bavail >= enough/uint64(fs.Bsize)
}
