package testbed

import (
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// Alone runs the calling test again in a process of its own, in which a test may change what
// belongs to the whole process. It is true there.
func Alone(t *testing.T) bool {
	t.Helper()
	const name = "HEARTBEAT_TEST_ALONE"
	if os.Getenv(name) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), name+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// LimitFiles lets the kernel write files up to a size only, in the whole process (Alone): of a
// write that crosses it, it writes the part before (setrlimit(2)).
func LimitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: math.MaxUint64}); err != nil {
		t.Fatal(err)
	}
}
