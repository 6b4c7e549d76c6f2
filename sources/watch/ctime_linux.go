package watch

import (
	"io/fs"
	"syscall"
)

// inodeChanged returns when the inode last changed, in Unix nanoseconds. No program
// can set this time, so it reveals a replaced file with an old time stamp.
func inodeChanged(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return info.ModTime().UnixNano()
}
