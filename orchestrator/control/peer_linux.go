package control

import (
	"net"
	"syscall"
)

// peerPID returns the process that listens at the other end, or 0
// (unix(7), SO_PEERCRED).
func peerPID(conn net.Conn) int {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = control.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	}) // it stays 0
	return pid
}
