package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"heartbeat/ptyrun"
)

// holders returns the processes that have the socket at one address of this machine
// that is connected to another. The error matches ErrStranger if another user than this one
// and root made the socket.
func holders(at, to netip.AddrPort) ([]process, error) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		inode, uid, err := inodeOf(table, at, to)
		switch {
		case errors.Is(err, errNoEntry) || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		if inode == "0" {
			return nil, fmt.Errorf("%w: the connection is closed", ErrUnseen)
		}
		if uid != os.Getuid() && uid != 0 {
			return nil, fmt.Errorf("%w (%d)", ErrStranger, uid)
		}
		pids, err := having("socket:[" + inode + "]")
		if err == nil && len(pids) == 0 && uid == os.Getuid() {
			err = fmt.Errorf("%w: no process has its socket", ErrUnseen)
		}
		return pids, err
	}
	if isLocal(at.Addr()) {
		return nil, fmt.Errorf("%w: the connection is gone", ErrUnseen)
	}
	return nil, ErrElsewhere
}

var errNoEntry = errors.New("no such connection")

// inodeOf looks a connection up in a table of proc_pid_net(5), and returns its
// socket's inode and user.
func inodeOf(table string, at, to netip.AddrPort) (inode string, uid int, err error) {
	f, err := os.Open(table)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || parseAddr(fields[1]) != at || parseAddr(fields[2]) != to {
			continue
		}
		uid, err = strconv.Atoi(fields[7])
		return fields[9], uid, err
	}
	return "", 0, errNoEntry
}

// parseAddr reads ADDRESS:PORT in hexadecimal digits: the address in words of 32 bits
// in the machine's byte order. The zero value is none.
func parseAddr(text string) netip.AddrPort {
	ip, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(ip)
	number, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(number))
}

// having returns the processes that have a file open, of those that can be looked at.
func having(target string) ([]process, error) {
	procs, err := names("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var all []process
	for _, name := range procs {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		folder := "/proc/" + name + "/fd"
		fds, _ := names(folder) // another user's, or it has ended
		for _, fd := range fds {
			if to, err := os.Readlink(folder + "/" + fd); err == nil && to == target {
				start, _ := ptyrun.StartTimeOf(pid)
				if again, err := os.Readlink(folder + "/" + fd); err == nil && again == target {
					all = append(all, process{pid, start})
				}
				break
			}
		}
	}
	return all, nil
}

func names(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}
