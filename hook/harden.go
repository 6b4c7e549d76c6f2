package hook

import (
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
)

// statusQuit is the exit status after SIGQUIT: 128 and the signal's number,
// as a shell reports it.
const statusQuit = 128 + int(syscall.SIGQUIT)

// maxStack is far above what the deepest JSON takes.
const maxStack = 64 << 20

var hardenOnce sync.Once

// harden sees to it that nothing but a handed-over entry ends this process
// with 2, which the client takes for "stderr is a prompt". A Go program ends
// with 2 after a panic, a fatal runtime error and SIGQUIT unless the traceback
// level is "crash": then it is SIGABRT (runtime documentation, GOTRACEBACK).
func harden() {
	debug.SetTraceback("crash")
	hardenOnce.Do(func() {
		// A runaway recursion ends in a moment, not after the default gigabyte.
		debug.SetMaxStack(maxStack)
		// A closed pipe is an error to look at, not a death.
		signal.Ignore(syscall.SIGPIPE)
		quit := make(chan os.Signal, 1)
		signal.Notify(quit, syscall.SIGQUIT)
		go func() {
			<-quit
			os.Exit(statusQuit)
		}()
	})
}

// quiet takes file descriptor 2 away from the runtime, so that no stack
// reaches the client, and returns where entries go instead. Writers that are
// not the process's own stderr come back as they are.
func quiet(stderr io.Writer) io.Writer {
	if stderr != io.Writer(os.Stderr) {
		return stderr
	}
	// SIGABRT shall leave no core file in the agent's directory.
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
