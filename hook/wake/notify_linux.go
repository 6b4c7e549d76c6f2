package wake

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// notify reports changes of files by inotify(7) on their folders, because the
// files come and go. Without inotify (128 instances per user are the default)
// it returns a nil channel.
func notify(paths ...string) (changed <-chan struct{}, stop func()) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}
	const mask = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_CLOSE_WRITE | syscall.IN_MOVED_TO |
		syscall.IN_MOVED_FROM | syscall.IN_DELETE | syscall.IN_DELETE_SELF | syscall.IN_ONLYDIR
	names := make(map[string]bool)
	for _, p := range paths {
		names[filepath.Base(p)] = true
		if _, err := syscall.InotifyAddWatch(fd, filepath.Dir(p), mask); err != nil {
			syscall.Close(fd)
			return nil, func() {}
		}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	c := make(chan struct{}, 1)
	go readEvents(f, names, c)
	return c, func() { f.Close() }
}

// readEvents tells c of events that concern names, until f is closed.
func readEvents(f *os.File, names map[string]bool, c chan<- struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := f.Read(buffer)
		if err != nil {
			return
		}
		if concerns(buffer[:n], names) {
			select {
			case c <- struct{}{}:
			default: // it has not looked since the last one
			}
		}
	}
}

// concerns reports whether one of the events is about names, or about the
// folder itself or a queue that overflowed (they have no name).
func concerns(events []byte, names map[string]bool) bool {
	for len(events) >= syscall.SizeofInotifyEvent {
		length := int(binary.NativeEndian.Uint32(events[12:16]))
		end := syscall.SizeofInotifyEvent + length
		if end > len(events) {
			return true
		}
		name := strings.TrimRight(string(events[syscall.SizeofInotifyEvent:end]), "\x00")
		if name == "" || names[name] {
			return true
		}
		events = events[end:]
	}
	return false
}
