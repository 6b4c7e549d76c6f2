package hook

import (
	"bytes"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// uptime reads CLOCK_MONOTONIC (clock_gettime(2)) and the id of the boot that it
// counts from.
func uptime() (up time.Duration, boot string) {
	const monotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, ""
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, ""
	}
	return time.Duration(ts.Nano()), string(bytes.TrimSpace(id))
}
