package hook

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"

	"heartbeat/hook/inbox"
)

// lockHeld reports whether somebody holds the flock on path.
func lockHeld(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// takeLock takes the flock on path and returns its release.
func takeLock(path string) (func() error, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f.Close, nil
}

// promptOf is the prompt of the entry in flight.
func promptOf(f *inbox.InFlight) string {
	var s string
	if json.Unmarshal([]byte(f.RawLine), &s) == nil {
		return s
	}
	var e struct {
		Prompt string `json:"prompt"`
	}
	if strings.HasPrefix(f.RawLine, `{"heartbeat"`) && json.Unmarshal([]byte(f.RawLine), &e) == nil {
		return e.Prompt
	}
	return strings.TrimSpace(f.RawLine)
}
