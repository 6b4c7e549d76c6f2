package flock

import (
	"bufio"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Holder returns the process that holds the exclusive lock on path, or 0 if that is
// not known: nobody does, it is outside of this container, or the file system
// (btrfs) reports other device numbers to stat(2). The kernel lists locks in
// /proc/locks (proc_locks(5)).
func Holder(path string) int {
	for pid, w := range locks(path) {
		if w[1] == "FLOCK" && w[3] == "WRITE" {
			return pid
		}
	}
	return 0
}

// Lockers returns the processes that have something of the bytes of a file from the one to
// the other locked (fcntl(2), F_SETLK), as far as that is known; see Holder.
func Lockers(path string, from, to uint64) (pids []int) {
	for pid, w := range locks(path) {
		first, err := strconv.ParseUint(w[6], 10, 64)
		if err != nil || w[1] != "POSIX" || first > to || slices.Contains(pids, pid) {
			continue
		}
		if last, err := strconv.ParseUint(w[7], 10, 64); err == nil && last < from { // to its end: EOF
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// locks are those of a file, as the kernel lists them, by their processes.
func locks(path string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		info, err := os.Lstat(path)
		if err != nil {
			return
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return
		}
		f, err := os.Open("/proc/locks")
		if err != nil {
			return
		}
		defer f.Close()
		device := strconv.FormatUint(major(st.Dev), 16) + ":" + strconv.FormatUint(minor(st.Dev), 16)
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// 1: FLOCK  ADVISORY  WRITE 707 00:13:7390 0 EOF
			w := strings.Fields(lines.Text())
			if len(w) < 8 {
				continue
			}
			pid, err := strconv.Atoi(w[4])
			at := strings.LastIndexByte(w[5], ':')
			if err != nil || pid <= 0 || at < 0 || w[5][at+1:] != strconv.FormatUint(st.Ino, 10) || unpadded(w[5][:at]) != device {
				continue
			}
			if !yield(pid, w) {
				return
			}
		}
	}
}

// unpadded removes the leading zeros of 00:13.
func unpadded(device string) string {
	before, after, _ := strings.Cut(device, ":")
	trim := func(s string) string {
		if s = strings.TrimLeft(s, "0"); s == "" {
			return "0"
		}
		return s
	}
	return trim(before) + ":" + trim(after)
}

// major and minor take a device number apart, as glibc's gnu_dev_major(3) does.
func major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^uint64(0xfff) }

func minor(dev uint64) uint64 { return dev&0xff | dev>>12&^uint64(0xff) }
