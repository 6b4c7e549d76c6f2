package workspace

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// forbidsPrograms reports whether a directory is, or will be, on a file system from
// which nothing can be run.
func forbidsPrograms(dir string) bool {
	for {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err == nil {
			return int64(fs.Flags)&int64(noExec) != 0
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
