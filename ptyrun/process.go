package ptyrun

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Process identifies one process for good: a pid alone is reused.
type Process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // see StartTimeOf
	Command string `json:"command,omitempty"`
}

// ErrGone means that there is no such process, or only a zombie.
var ErrGone = errors.New("no such process")

// StartTimeOf returns when a process was started, in a unit of the system (on Linux
// clock ticks since boot, field 22 of proc_pid_stat(5)). It never changes for one
// process, and can be compared until the next boot. The error is ErrGone for a
// process that has ended, also when its parent has not waited for it.
func StartTimeOf(pid int) (uint64, error) {
	p, err := readProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("cannot look at process %d: %w", pid, err)
	}
	if p.zombie {
		return 0, fmt.Errorf("cannot look at process %d: %w", pid, ErrGone)
	}
	return p.start, nil
}

// identity tells processes with the same pid apart.
type identity struct {
	pid   int
	start uint64
}

// process is a process as the system shows it.
type process struct {
	identity
	ppid, pgrp, sid int
	zombie          bool
	tty             bool // it has a controlling terminal
	command         string
}

func (p process) public() Process {
	return Process{PID: p.pid, Start: p.start, Command: p.command}
}

func public(procs []process) []Process {
	var out []Process
	for _, p := range procs {
		out = append(out, p.public())
	}
	return out
}

// closure returns the living processes that root names, and their descendants. It
// never includes this process and its ancestors, and does not descend through them.
func closure(procs []process, self int, root func(process) bool) []process {
	byPID := make(map[int]process, len(procs))
	offspring := map[int][]process{}
	for _, p := range procs {
		byPID[p.pid] = p
		offspring[p.ppid] = append(offspring[p.ppid], p)
	}
	seen := map[int]bool{} // includes what is excluded
	for pid := self; pid != 0 && !seen[pid]; pid = byPID[pid].ppid {
		seen[pid] = true
	}
	var found []process
	var take func(p process)
	take = func(p process) {
		if seen[p.pid] || p.zombie {
			return
		}
		seen[p.pid] = true
		found = append(found, p)
		for _, o := range offspring[p.pid] {
			take(o)
		}
	}
	for _, p := range procs {
		if !seen[p.pid] && !p.zombie && root(p) {
			take(p)
		}
	}
	return found
}

// values returns the values of a variable in an environment as the kernel shows it:
// NUL-terminated strings. Text within another variable does not count: whoever
// names a directory writes into the environments of others.
func values(environ []byte, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok && !yield(string(value)) {
				return
			}
		}
	}
}

// inSession reports whether an environment belongs to a session, by its cookie.
func inSession(environ []byte, cookie string) bool {
	for value := range values(environ, "HEARTBEAT_SESSION") {
		if cookie != "" && value == cookie {
			return true
		}
	}
	return false
}

// markVariable carries the marks of all trees that a process belongs to, the
// outermost first, joined by colons.
const markVariable = "HEARTBEAT_TREE"

// withMark adds a tree's mark to an environment.
func withMark(env []string, mark string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if old, ok := strings.CutPrefix(kv, markVariable+"="); ok {
			mark = old + ":" + mark
			continue
		}
		out = append(out, kv)
	}
	return append(out, markVariable+"="+mark)
}

// inTree reports whether an environment has the mark of a tree.
func inTree(environ []byte, mark string) bool {
	for value := range values(environ, markVariable) {
		if slices.Contains(strings.Split(value, ":"), mark) {
			return true
		}
	}
	return false
}
