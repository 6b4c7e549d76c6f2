package ptyrun

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// keepReaping has orphans reaped as long as this process lives.
var keepReaping = sync.OnceValue(func() error {
	startReaper()
	reapOrphans()
	return nil
})

func brand() error {
	limit := unix.Rlimit{Cur: brandMark, Max: brandMark}
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &now); err == nil && now.Max <= brandMark {
		return nil
	}
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &limit, nil); err != nil {
		return fmt.Errorf("cannot brand what this process starts: %w", err)
	}
	return nil
}

// branded reports whether a process has the brand, by /proc/PID/limits, which everybody
// may read; known is false where that does not say.
func branded(pid int) (is, known bool) {
	buf := make([]byte, 4<<10) // 16 lines of 80 bytes
	n, err := readAtOnce("/proc/"+strconv.Itoa(pid)+"/limits", buf)
	if err != nil {
		return false, false
	}
	return parseLimits(buf[:n])
}

// parseLimits finds the hard limit in the line "Max file locks SOFT HARD UNIT".
func parseLimits(text []byte) (is, known bool) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("Max file locks"))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) < 2 {
			return false, false
		}
		if string(fields[1]) == "unlimited" {
			return false, true
		}
		hard, err := strconv.ParseUint(string(fields[1]), 10, 64)
		return err == nil && hard <= brandMark, err == nil
	}
	return false, false
}

// BrandHolds reports whether nothing that a process of this user has ever started can
// have taken a brand off: the user is not root, or root without the right to raise
// limits, as in most containers. The kernel asks for that right outside of all user
// namespaces.
func BrandHolds() bool {
	if _, known := branded(os.Getpid()); !known {
		return false
	}
	whole, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && !bytes.Equal(bytes.Join(bytes.Fields(whole), []byte(" ")), []byte("0 0 4294967295")) {
		return true
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	sets := []string{"CapPrm:", "CapAmb:", "CapInh:"}
	if os.Getuid() == 0 || os.Geteuid() == 0 {
		sets = append(sets, "CapBnd:") // what root's programs get
	}
	for _, set := range sets {
		_, rest, ok := bytes.Cut(status, []byte(set))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		bits, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
		if ok && (err != nil || bits&(1<<unix.CAP_SYS_RESOURCE) != 0) {
			return false
		}
	}
	return true
}
