package service

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// FirstProcess reports whether this process is the first one of its system or
// container: orphans become its children, and the kernel gives it no signal
// that it does not catch (pid_namespaces(7)).
func FirstProcess() bool { return os.Getpid() == 1 }

// Init runs the program again, as the child of this process, which then does only
// the duties of a first process: it reaps every process that ends, passes signals
// on to the child, and returns the child's exit status, or 128 plus its signal.
//
// The work is done in a child because then nothing has to be told apart: this
// process can reap everything that it waits for, on any kernel, and os/exec waits
// for none of it. The child has the default effects of signals, and its crash has
// an exit status.
func Init(argv []string) (status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("cannot find the running binary: %w", err)
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // all of them, before the child can miss one
	defer signal.Stop(signals)
	child, err := startChild(self, argv)
	if err != nil {
		return 0, fmt.Errorf("cannot start the scheduler as a child of the first process: %w", err)
	}
	go func() {
		for got := range signals {
			if passedOn(got) {
				_ = child.Signal(got) // it may have ended
			}
		}
	}()
	return reapUntil(child.Pid)
}

// startChild starts the child in a process group of its own: signals that a
// terminal sends to the foreground group then reach the child only once, and not a
// second time through us.
func startChild(self string, argv []string) (*os.Process, error) {
	attr := &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	if tty := int(os.Stdin.Fd()); term.IsTerminal(tty) {
		foreground := *attr
		foreground.Sys = &syscall.SysProcAttr{Foreground: true, Ctty: tty}
		if child, err := os.StartProcess(self, argv, &foreground); err == nil {
			return child, nil
		}
		// It is a terminal, but not our controlling one.
	}
	return os.StartProcess(self, argv, attr)
}

// passedOn reports whether a signal to the first process is meant for the child:
// all are, except those that tell the process itself something.
func passedOn(s os.Signal) bool {
	switch s {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGTTIN, syscall.SIGTTOU:
		return false // SIGURG is the Go runtime's own
	}
	return true
}

// reapUntil reaps processes that end until the child has ended.
func reapUntil(child int) (status int, err error) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("cannot wait for the scheduler: %w", err)
		case pid != child:
		case ws.Signaled():
			return 128 + int(ws.Signal()), nil
		default:
			return ws.ExitStatus(), nil
		}
	}
}
