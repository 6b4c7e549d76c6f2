package peer

import (
	"errors"

	"golang.org/x/sys/unix"

	"heartbeat/ptyrun"
)

// soPeerPIDFD is SO_PEERPIDFD (Linux 6.5).
const soPeerPIDFD = 77

// of reads SO_PEERCRED (unix(7)).
func of(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{UID: int(cred.Uid), PID: int(cred.Pid)}
	if p.PID > 0 {
		p.Start = startOf(fd, p.PID)
	}
	return p, nil
}

// startOf returns when the process began that has connected, or 0 if it has ended:
// another one may have its number already. Before Linux 6.5 that cannot be told.
func startOf(fd, pid int) uint64 {
	handle, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return 0 // it was waited for
	}
	start, gone := ptyrun.StartTimeOf(pid)
	if err == nil {
		ended := unix.PidfdSendSignal(handle, 0, nil, 0)
		_ = unix.Close(handle)
		if ended != nil && !errors.Is(ended, unix.EPERM) {
			return 0
		}
	}
	if gone != nil {
		return 0
	}
	return start
}
