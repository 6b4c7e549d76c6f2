package testbed

import (
	"runtime"
	"syscall"
	"testing"
)

// Debugged stops a process as a debugger does, until detach is called by the same goroutine.
func Debugged(t testing.TB, pid int) (detach func()) {
	t.Helper()
	runtime.LockOSThread()
	if err := syscall.PtraceAttach(pid); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, syscall.WALL, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.PtraceDetach(pid); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	}
}
