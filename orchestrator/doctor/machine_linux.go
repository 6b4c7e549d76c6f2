package doctor

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/orchestrator/volume"
	"heartbeat/ptyrun"
)

// volumeOf asks for the file system below dir, or below the nearest folder
// above it that is there.
func volumeOf(dir string) Volume {
	found, at, err := volume.Nearest(dir)
	v := Volume{Path: dir, Known: err == nil, Volume: found}
	if err != nil {
		return v
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil && !v.ReadOnly {
		v.Unwritable = err.Error()
	}
	return v
}

// terminalsOf tries to open a pseudo-terminal, and reads how many there are (pts(4)).
func terminalsOf() Terminals {
	read := func(name string) int {
		data, err := os.ReadFile("/proc/sys/kernel/pty/" + name)
		n, convErr := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || convErr != nil {
			return 0
		}
		return n
	}
	return Terminals{None: ptyrun.CheckTerminal(), Used: read("nr"), Max: read("max")}
}

// inotifyLimits reads the limits of inotify(7) for this user and what its
// processes use of them.
func inotifyLimits() Inotify {
	var in Inotify
	limit := func(name string) int {
		data, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
		n, convErr := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || convErr != nil {
			return math.MaxInt
		}
		return n
	}
	in.MaxInstances, in.MaxWatches = limit("max_user_instances"), limit("max_user_watches")
	in.Known = in.MaxInstances < math.MaxInt && in.MaxWatches < math.MaxInt
	eachProcess(func(dir string) {
		fds, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			return
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err != nil || to != "anon_inode:inotify" {
				continue
			}
			in.UsedInstances++
			info, _ := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
			in.UsedWatches += bytes.Count(info, []byte("inotify wd:"))
		}
	})
	return in
}

// eachProcess calls do with /proc/PID of each process of this user.
func eachProcess(do func(dir string)) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, n := range names {
		if _, err := strconv.Atoi(n.Name()); err != nil {
			continue
		}
		info, err := n.Info()
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() {
			do(filepath.Join("/proc", n.Name()))
		}
	}
}
