package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// class is what a process of the fleet is.
type class string

const (
	classScheduler class = "scheduler"
	classShim      class = "shim"
	classClient    class = "client"
	classHook      class = "hook"
	classTool      class = "tool" // and whatever else a session started
)

// process is a process of the fleet.
type process struct {
	pid   int
	class class
	agent string // "" when it cannot be told
}

// envMark is in the environment of all that the scheduler starts.
const envMark = "HEARTBEAT_SOAK_MARK"

// processes are all that run with the fleet's mark (Linux: /proc).
func (f *fleet) processes() []process {
	mark := []byte(envMark + "=" + f.Dir + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []process
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, mark) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(d))
		line, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		p := process{pid: pid, class: classOf(strings.Split(string(line), "\x00"))}
		if p.class != classScheduler { // it has locked all of their directories
			p.agent = f.agentOf(d)
		}
		all = append(all, p)
	}
	return all
}

func classOf(argv []string) class {
	if len(argv) < 2 || !strings.HasPrefix(filepath.Base(argv[0]), "heartbeat") {
		return classTool
	}
	switch {
	case argv[1] == "launch":
		return classShim
	case argv[1] == "simulate":
		return classClient
	case argv[1] == "hook":
		return classHook
	case argv[1] == "-f":
		return classScheduler
	}
	return classTool
}

// agentOf tells an agent by the directory that a process is in, or has locked.
func (f *fleet) agentOf(proc string) string {
	paths := []string{filepath.Join(proc, "cwd")}
	open, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
	for _, p := range append(paths, open...) {
		to, err := os.Readlink(p)
		if err != nil {
			continue
		}
		if below, ok := strings.CutPrefix(to, f.path("agents")+"/"); ok {
			name, _, _ := strings.Cut(below, "/")
			return name
		}
	}
	return ""
}

// signal reports whether there was such a process.
func (p process) signal(sig syscall.Signal) bool {
	return !errors.Is(syscall.Kill(p.pid, sig), syscall.ESRCH)
}

// footprint is what a process holds.
type footprint struct {
	RSS int64 `json:"rss"` // bytes
	FDs int   `json:"fds"`
}

func footprintOf(pid int) (f footprint, ok bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return f, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			f.RSS = kb << 10
		}
	}
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	f.FDs = len(fds)
	return f, err == nil
}
