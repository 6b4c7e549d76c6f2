// Package process tells a process from a later one with its number, and what it does.
package process

import (
	"fmt"
	"strconv"
)

// Process identifies a process even if its pid is reused.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot: /proc/PID/stat field 22
}

// String is "PID:START", or "" for no process.
func (p Process) String() string {
	if p.PID == 0 {
		return ""
	}
	return strconv.Itoa(p.PID) + ":" + strconv.FormatUint(p.Start, 10)
}

// Numbered tells people which process something is, after its name; "" where pid is 0: it
// is not known.
func Numbered(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

// Halt says why a process does nothing, however long one waits; the zero value: it goes on,
// or that is not known.
type Halt struct {
	By string // what has stopped it
	Do string // what lets it go on
}

// HaltOf says that of a process in a state (StateOf).
func HaltOf(pid int, state byte) Halt {
	switch state {
	case 'T':
		return Halt{"a signal", fmt.Sprintf("kill -CONT %d", pid)}
	case 't':
		return Halt{"a debugger", "let the debugger go on, or end it"}
	}
	return Halt{}
}

// Of identifies a process that lives.
func Of(pid int) Process {
	start, _ := startTime(pid)
	return Process{PID: pid, Start: start}
}
