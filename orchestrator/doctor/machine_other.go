//go:build !linux

package doctor

import (
	"os"

	"golang.org/x/sys/unix"

	"heartbeat/ptyrun"
)

// volumeOf tells only whether the directory can be written to.
func volumeOf(dir string) Volume {
	v := Volume{Path: dir}
	if _, err := os.Stat(dir); err != nil {
		return v
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		v.Known, v.Unwritable = true, err.Error()
	}
	return v
}

func terminalsOf() Terminals { return Terminals{None: ptyrun.CheckTerminal()} }

func inotifyLimits() Inotify { return Inotify{} }
