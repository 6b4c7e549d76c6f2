package hook

import "fmt"

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
