package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"heartbeat/internal/testbed"
)

// envNamespace tells the inner test process where it runs: "loopback", or why
// there is no namespace.
const envNamespace = "HEARTBEAT_E2E_NAMESPACE"

const loopback = "loopback"

// TestMain is several programs: by the name it is called with a hook or the
// stand-in, else the tests, in a network namespace of their own.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case hookName:
		os.Exit(hookMain(os.Args[1:]))
	case standInName:
		os.Exit(standInMain(os.Args[1:]))
	case posterName:
		os.Exit(posterMain(os.Args[1:]))
	case installedName:
		os.Exit(standInMain(append(installedFaults(), os.Args[1:]...)))
	}
	if os.Getenv(envNamespace) == "" {
		os.Exit(inNamespace())
	}
	if os.Getenv(envNamespace) == loopback {
		if err := raiseLoopback(); err != nil {
			os.Setenv(envNamespace, err.Error())
		}
	}
	testbed.AtOnce(testsAtOnce())
	os.Exit(testbed.Run(m))
}

// testsAtOnce is how many tests run for each processor: three where the real client is there,
// which takes two seconds of a processor to start, and 220 MB of memory (2.1.329), and else
// many, as they wait more than they work.
func testsAtOnce() int {
	if _, err := realClientPath(); err == nil {
		return 3
	}
	return 16
}

// inNamespace runs this program again in a new network namespace and returns
// its exit status. Root needs nothing else; others need user namespaces.
func inNamespace() int {
	runtime.LockOSThread() // Pdeathsig is about the thread
	whole := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	user := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWUSER,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN},
	}
	code, err := again(whole, loopback)
	if errors.Is(err, os.ErrPermission) {
		code, err = again(user, loopback)
	}
	if err != nil {
		reason := fmt.Sprintf("cannot make a network namespace: %v", err)
		code, err = again(&syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, reason)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot start the tests: %v\n", err)
		return 1
	}
	return code
}

// again runs this program and returns its exit status, or why it did not start.
func again(attr *syscall.SysProcAttr, where string) (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), envNamespace+"="+where)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		fmt.Fprintf(os.Stderr, "the tests ended by %v\n", exit)
		return 1, nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// raiseLoopback does what `ip link set lo up` does (netdevice(7)).
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket: %w", err)
	}
	defer unix.Close(fd)
	req := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP}
	copy(req.name[:], "lo")
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("cannot bring up loopback: %w", errno)
	}
	return nil
}
