package ptyrun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxEnviron limits how much of a process's environment is read (execve(2):
// arguments and environment together fit in a quarter of the stack limit).
const maxEnviron = 8 << 20

// snapshot lists all processes. Those that end meanwhile are left out.
func snapshot() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	procs := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// readProcess reads /proc/PID/stat; the error is ErrGone if there is no such
// process.
func readProcess(pid int) (process, error) {
	var line [1024]byte // the 22 fields that are read take at most 500
	n, err := readAtOnce("/proc/"+strconv.Itoa(pid)+"/stat", line[:])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return process{}, ErrGone
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, line[:n])
}

// readAtOnce fills buf with one read. A snapshot opens each process's file: an
// os.File would take ten system calls for it, this takes three.
func readAtOnce(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// parseStat reads a line of proc_pid_stat(5). The command name is in parentheses
// and may hold any byte, so the last parenthesis ends it.
func parseStat(pid int, data []byte) (process, error) {
	begin, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if begin < 0 || end < begin {
		return process{}, fmt.Errorf("cannot read the state of process %d", pid)
	}
	f := bytes.Fields(data[end+1:]) // f[0] is field 3, the state
	if len(f) < 20 {
		return process{}, fmt.Errorf("cannot read the state of process %d", pid)
	}
	p := process{command: string(data[begin+1 : end]), zombie: f[0][0] == 'Z' || f[0][0] == 'X'}
	p.pid = pid
	p.tty = string(f[4]) != "0"
	var errs [4]error
	p.ppid, errs[0] = strconv.Atoi(string(f[1]))
	p.pgrp, errs[1] = strconv.Atoi(string(f[2]))
	p.sid, errs[2] = strconv.Atoi(string(f[3]))
	p.start, errs[3] = strconv.ParseUint(string(f[19]), 10, 64)
	return p, errors.Join(errs[:]...)
}

// environ returns a process's initial environment if the process belongs to our
// user, otherwise nothing.
func environ(pid int) []byte {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	return data
}

// limitsShown reports whether the system shows the limits of processes.
var limitsShown = sync.OnceValue(func() bool {
	_, known := branded(os.Getpid())
	return known
})

// describe adds what takes a file of its own each.
func (f *Forebear) describe() {
	dir := "/proc/" + strconv.Itoa(f.PID)
	if status, err := os.ReadFile(dir + "/status"); err == nil {
		_, rest, _ := bytes.Cut(status, []byte("\nUid:"))
		if ids := bytes.Fields(rest); len(ids) > 0 {
			uid, err := strconv.Atoi(string(ids[0]))
			f.Mine = err == nil && uid == os.Getuid()
		}
	}
	groups, _ := os.ReadFile(dir + "/cgroup")
	f.Group = groupIn(groups)
	program, _ := os.Readlink(dir + "/exe")
	f.Program = strings.TrimSuffix(program, " (deleted)")
	if args, err := os.ReadFile(dir + "/cmdline"); err == nil && len(args) > 0 {
		f.Args = strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
	}
}

// groupIn returns the path in the hierarchy by which systemd tells units apart: that of
// version 2 or, beside version 1, systemd's own.
func groupIn(groups []byte) (path string) {
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if at, ok := strings.CutPrefix(rest, ":"); ok && len(at) > len(path) {
			path = at
		}
		if at, ok := strings.CutPrefix(rest, "name=systemd:"); ok && len(at) > len(path) {
			path = at
		}
	}
	return path
}

// signal sends a signal to exactly this process: the pidfd prevents the pid from
// being reused between the check and the signal. A zombie counts as gone.
func signal(p process, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, syscall.ENOSYS) {
		fd = -1
	} else if err != nil {
		return err
	} else {
		defer func() { _ = unix.Close(fd) }()
	}
	if start, err := StartTimeOf(p.pid); err != nil || start != p.start {
		return ErrGone
	}
	if fd < 0 { // before Linux 5.3
		return syscall.Kill(p.pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}
