package session

import "os"

// ownImage is this program's own file on Linux, even after it was replaced or
// removed (proc(5)).
const ownImage = "/proc/self/exe"

// Self returns a path by which the running program can be started, and read, as it
// is: if an upgrade has replaced or removed its file, that path still leads to this
// one.
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
