package hook

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// startTime returns a process's start in clock ticks after boot: field 22 of
// /proc/PID/stat (proc_pid_stat(5)), counted after the last ")" because the
// name before it may hold anything.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
