package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxLog caps hook.log; one older file of this size is kept beside it.
const maxLog = 1 << 20

// logLine appends one line to hook.log in home. A hook has nowhere to report
// that this failed: the client must go on.
func logLine(home, format string, args ...any) {
	f, err := openLog(home)
	if err != nil {
		return
	}
	defer f.Close()
	line := time.Now().UTC().Format("2006-01-02T15:04:05.000Z") + " " + shorten(fmt.Sprintf(format, args...), 4096)
	_, _ = f.WriteString(line + "\n")
}

func openLog(home string) (*os.File, error) {
	path := filepath.Join(home, "hook.log")
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	return f, nil
}
