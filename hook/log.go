package hook

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
)

const logName = "hook.log"

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
	line := time.Now().UTC().Format("2006-01-02T15:04:05.000Z") + " " + foreign.Short(fmt.Sprintf(format, args...), 4096)
	if _, err := f.WriteString(line + "\n"); err != nil {
		mark(f)
	}
}

// mark gives hook.log the present time, which a full disk allows: the shim has to see that a
// hook was called that could write nothing.
func mark(f *os.File) {
	now := syscall.NsecToTimeval(time.Now().UnixNano())
	_ = syscall.Futimes(int(f.Fd()), []syscall.Timeval{now, now})
}

// openLog opens hook.log. A full log, or something that is not a file, is renamed
// to the older name first.
func openLog(home string) (file *os.File, err error) {
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	err = inHome(home, func(f *durable.Folder) error {
		if info, err := f.Stat(logName); err == nil && info.Size() > maxLog {
			_ = f.Rename(logName, logName+".1")
		}
		file, err = f.OpenFile(logName, flags)
		if errors.Is(err, durable.ErrNotRegular) && f.Rename(logName, logName+".1") == nil {
			file, err = f.OpenFile(logName, flags)
		}
		return err
	})
	return file, err
}
