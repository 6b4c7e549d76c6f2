// Package harden keeps a hook's process from ending with 2, which the client takes for a prompt,
// for any reason of the runtime's.
package harden

import (
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
)

// StatusQuit is the exit status after SIGQUIT: 128 and the signal's number,
// as a shell reports it.
const StatusQuit = 128 + int(syscall.SIGQUIT)

// maxStack is far more than parsing the deepest JSON needs.
const maxStack = 64 << 20

var once sync.Once

// Process makes sure that this process exits with 2 only for a handed-over entry,
// because the client takes 2 to mean "stderr is a prompt". A Go program exits with
// 2 after a panic, a fatal runtime error and SIGQUIT, unless the traceback level is
// "crash": then it dies of SIGABRT (runtime documentation, GOTRACEBACK).
func Process() {
	debug.SetTraceback("crash")
	once.Do(func() {
		// A runaway recursion must end soon, not only at the default gigabyte.
		debug.SetMaxStack(maxStack)
		// A write to a closed pipe must return an error, not kill the process.
		signal.Ignore(syscall.SIGPIPE)
		quit := make(chan os.Signal, 1)
		signal.Notify(quit, syscall.SIGQUIT)
		go func() {
			<-quit
			os.Exit(StatusQuit)
		}()
	})
}

// Quiet takes file descriptor 2 away from the runtime, so that no stack trace
// reaches the client, and returns a writer for entries. It returns any writer other
// than the process's own stderr unchanged.
func Quiet(stderr io.Writer) io.Writer {
	if stderr != io.Writer(os.Stderr) {
		return stderr
	}
	// SIGABRT must not leave a core file in the agent's directory.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return stderr
	}
	defer null.Close()
	saved, err := syscall.Dup(2)
	if err != nil {
		return stderr
	}
	syscall.CloseOnExec(saved)
	if err := redirect(int(null.Fd()), 2); err != nil {
		syscall.Close(saved)
		return stderr
	}
	return os.NewFile(uintptr(saved), "stderr")
}
