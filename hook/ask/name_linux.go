package ask

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// openPath is O_PATH (open(2)): the folder is named, not read.
const openPath = 0x200000

// ShortName returns a name of a socket's path that is short enough for the system, and is good
// until done is called.
func ShortName(path string) (name string, done func(), err error) {
	if len(path) <= longestName {
		return path, func() {}, nil
	}
	fd, err := syscall.Open(filepath.Dir(path), openPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + filepath.Base(path), func() { syscall.Close(fd) }, nil
}
