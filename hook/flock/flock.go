// Package flock holds advisory whole-file locks (flock(2)). Locks belong to
// the open file, are released by the kernel when its holder dies, and are not
// inherited by children, because Go opens files close-on-exec.
package flock
