package session

import "os"

// ownImage is this program's own file on Linux, also when it was replaced or
// removed (proc(5)).
const ownImage = "/proc/self/exe"

// Self is a path by which the running program can be started, and read, as
// it is: where an upgrade has put another one, or nothing, in the place of its
// file, that is still this one.
func Self() string {
	path, err := os.Executable()
	own, ownErr := os.Stat(ownImage)
	if ownErr != nil {
		return path // not Linux
	}
	if named, statErr := os.Stat(path); err == nil && statErr == nil && os.SameFile(named, own) {
		return path
	}
	return ownImage
}
