package ptyrun

import (
	"bytes"
	"os"
	ossignal "os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeReaper makes this process adopt the orphans among its descendants
// (PR_SET_CHILD_SUBREAPER in prctl(2)). It cannot be undone.
var becomeReaper = sync.OnceValue(func() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// startReaper reaps orphans as they end, until stop is called.
func startReaper() (stop func()) {
	ended := make(chan os.Signal, 1)
	ossignal.Notify(ended, syscall.SIGCHLD)
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				reapOrphans()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ossignal.Stop(ended)
		close(quit)
	}
}

// reaping prevents two goroutines from waiting for the same pid: the second might
// get a newer child with the same number.
var reaping sync.Mutex

// pidfdsHeld reports whether the os package holds a pidfd of every process that it
// started, as it does from Linux 5.4 on.
var pidfdsHeld = sync.OnceValue(func() bool {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return false
	}
	defer func() { _ = self.Release() }()
	return self.WithHandle(func(uintptr) {}) == nil
})

// reapOrphans waits for the orphans that have ended. The children that os/exec
// waits for are recognized by the pidfd that the os package holds, and without
// pidfds by the process session: an orphan from a child's tree is never in ours.
func reapOrphans() {
	reaping.Lock()
	defer reaping.Unlock()
	var dead []process
	mySession, err := unix.Getsid(0)
	if err != nil {
		return
	}
	for _, pid := range ownPIDs() {
		if p, err := readProcess(pid); err == nil && p.zombie && (pidfdsHeld() || p.sid != mySession) {
			dead = append(dead, p)
		}
	}
	if len(dead) == 0 {
		return
	}
	owned := ownChildren()
	for _, p := range dead {
		if !owned[p.pid] {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// ownPIDs lists this process's children, including adopted ones, from
// /proc/self/task/TID/children, or from all processes if the kernel was built
// without that file.
func ownPIDs() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	missing := true
	for _, t := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		missing = false
		for f := range bytes.FieldsSeq(data) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if !missing {
		return pids
	}
	procs, _ := snapshot()
	for _, p := range procs {
		if p.ppid == os.Getpid() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// ownChildren returns the pids of which the os package (or signal) holds a pidfd:
// processes that os/exec started and has not waited for. It includes the pids of
// all living Children.
func ownChildren() map[int]bool {
	owned := children.pids()
	fds, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		return owned
	}
	for _, fd := range fds {
		data, err := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		if err != nil {
			continue
		}
		// Only the fdinfo of pidfds has "Pid:" (proc_pid_fdinfo(5)).
		_, rest, ok := bytes.Cut(data, []byte("\nPid:"))
		if !ok {
			continue
		}
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
			owned[pid] = true
		}
	}
	return owned
}
