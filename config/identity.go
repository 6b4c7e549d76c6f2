package config

import (
	"os"
	"syscall"
)

// fileID names a directory however it is spelt: the same one has two paths
// where a file system ignores case, or is mounted twice.
type fileID struct{ device, inode uint64 }

// identify returns false for what does not exist.
func identify(path string) (fileID, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(stat.Dev), stat.Ino}, true //nolint:unconvert // Dev is signed on darwin
}
