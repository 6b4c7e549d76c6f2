package hook

import (
	"net"
	"syscall"

	"heartbeat/hook/process"
)

// processAt is the process at the other end of a socket.
func processAt(conn net.Conn) (p Process) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return p
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			p.PID = int(cred.Pid)
		}
	})
	return process.Of(p.PID)
}
