package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// startTime returns a process's start in clock ticks after boot: field 22 of
// /proc/PID/stat (proc_pid_stat(5)).
func startTime(pid int) (uint64, error) {
	_, start, err := statOf(pid)
	return start, err
}

// Lives reports whether a process exists and has not ended. A zombie (Z) has ended.
func Lives(p Process) bool {
	state, start, err := statOf(p.PID)
	return err == nil && start == p.Start && state != 'Z' && state != 'X'
}

// StateOf returns the state of a process as ps(1) prints it: T for one that was stopped;
// 0: it is not known.
func StateOf(pid int) byte {
	state, _, err := statOf(pid)
	if err != nil {
		return 0
	}
	return state
}

// statOf reads fields 3 and 22 of /proc/PID/stat. It counts after the last ")",
// because the name before it may contain anything.
func statOf(pid int) (state byte, start uint64, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return fields[0][0], start, err
}
