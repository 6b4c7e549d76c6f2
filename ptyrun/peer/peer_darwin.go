package peer

import (
	"golang.org/x/sys/unix"

	"heartbeat/ptyrun"
)

// of reads LOCAL_PEERCRED and LOCAL_PEERPID (unix(4)).
func of(fd int) (Peer, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		pid = -1
	}
	start, _ := ptyrun.StartTimeOf(pid)
	return Peer{UID: int(cred.Uid), PID: pid, Start: start}, nil
}
