package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// envNamespace tells the inner process that it runs in a mount namespace of
// its own, or that there is none.
const envNamespace = "HEARTBEAT_SOAK_NAMESPACE"

func insideNamespace() bool { return os.Getenv(envNamespace) != "" }

// inNamespace runs this program again where it may mount: what it mounts is
// gone with it, however it ends. Root needs nothing else; others need user
// namespaces.
func inNamespace() int {
	attrs := []*syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNS},
		{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
		{},
	}
	// The inner process gets the terminal's signals too, and ends in order.
	signal.Ignore(syscall.SIGINT)
	for i, attr := range attrs {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Args[0] = os.Args[0]
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envNamespace, i))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = attr
		if err := cmd.Start(); err != nil {
			continue
		}
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
			return exit.ExitCode()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "soak: cannot start itself again")
	return 1
}

// ownDisk makes a folder a file system of its own, in memory and small.
func ownDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Nothing that is mounted here is to show outside of the namespace.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m,mode=0700"); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	return nil
}

// fillDisk leaves no room on a folder's file system until free is called.
func fillDisk(dir string) (free func(), err error) {
	path := filepath.Join(dir, ".filler")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	chunk := make([]byte, 256<<10)
	for len(chunk) > 0 {
		if _, err := f.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
	return func() { _ = os.Remove(path) }, nil
}

// closeDisk unmounts what ownDisk mounted; with keep what is on it stays in
// the folder.
func closeDisk(dir string, keep bool) error {
	kept := dir + ".kept"
	var err error
	if keep {
		// cp, because sockets may be there: it says so, and copies the rest.
		_ = exec.Command("cp", "-r", dir, kept).Run()
	}
	err = syscall.Unmount(dir, syscall.MNT_DETACH)
	if keep {
		err = errors.Join(err, os.Remove(dir), os.Rename(kept, dir))
	}
	return err
}
