package ptyrun

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// There is no subreaper on this system: launchd adopts and reaps orphans, and we
// find them by their process session and their environment.

func becomeReaper() error { return nil }

func startReaper() (stop func()) { return func() {} }

func reapOrphans() {}

func ownChildren() map[int]bool { return children.pids() }

// zombieState is SZOMB of <sys/proc.h>.
const zombieState = 5

func snapshot() ([]process, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	procs := make([]process, 0, len(infos))
	for i := range infos {
		procs = append(procs, fromKinfo(&infos[i]))
	}
	return procs, nil
}

func fromKinfo(k *unix.KinfoProc) process {
	name, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	p := process{
		ppid: int(k.Eproc.Ppid), pgrp: int(k.Eproc.Pgid),
		zombie: k.Proc.P_stat == zombieState, command: string(name),
	}
	p.pid = int(k.Proc.P_pid)
	p.start = uint64(k.Proc.P_starttime.Sec)*1_000_000 + uint64(k.Proc.P_starttime.Usec)
	p.sid, _ = unix.Getsid(p.pid)
	p.tty = k.Eproc.Tdev != -1 // NODEV
	return p
}

// limitsShown is false: the system shows nobody another process's limits.
func limitsShown() bool { return false }

// describe adds what another request tells.
func (f *Forebear) describe() {
	if k, err := unix.SysctlKinfoProc("kern.proc.pid", f.PID); err == nil {
		f.Mine = int(k.Eproc.Pcred.P_ruid) == os.Getuid()
	}
	data, err := unix.SysctlRaw("kern.procargs2", f.PID)
	if err != nil || len(data) < 4 {
		return
	}
	argc := int(binary.NativeEndian.Uint32(data))
	program, rest, _ := bytes.Cut(data[4:], []byte{0})
	f.Program, rest = string(program), bytes.TrimLeft(rest, "\x00")
	for range argc {
		var arg []byte
		if arg, rest, _ = bytes.Cut(rest, []byte{0}); len(f.Args) < maxArgs {
			f.Args = append(f.Args, string(arg))
		}
	}
}

// maxArgs is how many arguments of a process are looked at.
const maxArgs = 100

func readProcess(pid int) (process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) {
		return process{}, ErrGone // no such process: an empty answer is EIO
	}
	if err != nil {
		return process{}, err
	}
	return fromKinfo(k), nil
}

// environ returns what follows the arguments in kern.procargs2: argc, the
// path, padding, the arguments and then the environment, NUL-terminated.
func environ(pid int) []byte {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Eproc.Ucred.Uid) != os.Geteuid() {
		return nil
	}
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(data) < 4 {
		return nil
	}
	argc := int(binary.NativeEndian.Uint32(data))
	_, rest, _ := bytes.Cut(data[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for range argc {
		_, rest, _ = bytes.Cut(rest, []byte{0})
		if len(rest) == 0 {
			return nil
		}
	}
	return rest
}

func signal(p process, sig syscall.Signal) error {
	if start, err := StartTimeOf(p.pid); err != nil || start != p.start {
		return ErrGone
	}
	return syscall.Kill(p.pid, sig)
}
