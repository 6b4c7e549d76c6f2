package ptyrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heartbeat/internal/testbed"
)

func TestParseLimits(t *testing.T) {
	t.Parallel()
	const before = "Limit                     Soft Limit           Hard Limit           Units     \nMax cpu time              unlimited            unlimited            seconds   \n"
	for text, want := range map[string][2]bool{
		before + "Max file locks            unlimited            unlimited            locks     \n": {false, true},
		before + "Max file locks            1                    1                    locks     \n": {true, true},
		before + "Max file locks            0                    0                    locks     \n": {true, true},
		before + "Max file locks            0                    unlimited            locks     \n": {false, true},
		before + "Max file locks            64                   64                   locks     \n": {false, true},
		before + "Max file locks            x\n":                                                    {false, false},
		before:                                                                                      {false, false},
		"":                                                                                          {false, false},
	} {
		if is, known := parseLimits([]byte(text)); is != want[0] || known != want[1] {
			t.Errorf("%q: %v, %v", text, is, known)
		}
	}
}

// TestABrandStays: on all that a process starts, also what hides, and on what it leaves
// behind, which the process adopts and reaps; its own children keep their exit status.
func TestABrandStays(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	if is, known := branded(os.Getpid()); is || !known {
		t.Fatalf("branded from the start: %v, %v", is, known)
	}
	if err := errors.Join(Bind(), Bind()); err != nil {
		t.Fatal(err)
	}
	const hides = `env -i PATH="$PATH" setsid -f sh -c 'setsid -f sh -c "echo \$\$ >pid.new; mv pid.new pid; exec sleep 1000"'`
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", hides)
	if cmd.Dir = dir; cmd.Run() != nil {
		t.Fatal("it cannot hide")
	}
	var left int
	if !testbed.Await(testbed.Patience, func() bool {
		data, _ := os.ReadFile(dir + "/pid")
		_, err := fmt.Sscan(string(data), &left)
		return err == nil
	}) {
		t.Fatal("it has not begun")
	}
	if is, _ := branded(left); !is || len(Lineage(left)) < 2 || Lineage(left)[1].PID != os.Getpid() {
		t.Errorf("what hides is branded: %v, %+v", is, Lineage(left))
	}
	raise := &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(left, unix.RLIMIT_LOCKS, raise, nil); (err == nil) == BrandHolds() {
		t.Errorf("taken off: %v, and it is said to hold: %v", err, BrandHolds())
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			cmd := exec.Command("sh", "-c", fmt.Sprintf("(sleep 0.0%d &) ; exit %d", i%10, i))
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != i {
				t.Errorf("a child ended with %d, not %d", got, i)
			}
		})
	}
	all.Wait()
	_ = syscall.Kill(left, syscall.SIGKILL)
	if !testbed.Await(testbed.Patience, func() bool { return len(ownPIDs()) == 0 }) {
		out, _ := exec.Command("ps", "-o", "pid,ppid,stat,args", "--ppid", fmt.Sprint(os.Getpid())).Output()
		t.Errorf("not reaped:\n%s", strings.TrimSpace(string(out)))
	}
}
