//go:build !linux

package ask

import (
	"fmt"
	"syscall"
)

// ShortName returns a name of a socket's path that is short enough for the system, and is good
// until done is called. Here there is no other name of a long one.
func ShortName(path string) (name string, done func(), err error) {
	if len(path) > longestName {
		return "", nil, fmt.Errorf("%q has over %d bytes: %w", path, longestName, syscall.ENAMETOOLONG)
	}
	return path, func() {}, nil
}
