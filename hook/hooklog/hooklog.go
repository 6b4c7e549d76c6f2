// Package hooklog is hook.log in an agent's .heartbeat folder: what hooks have to say, who have
// nobody to say it to.
package hooklog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
)

// Name is the file's name in the folder.
const Name = "hook.log"

// MaxLog caps hook.log, in bytes; one older file of this size is kept beside it.
const MaxLog = 1 << 20

// Line appends one line to hook.log in home, a .heartbeat folder. A hook has nowhere to report
// that this failed: the client must go on.
func Line(home, format string, args ...any) {
	f, err := Open(home)
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

// Open opens hook.log in home, for appending. A full log, or something that is not a file, is renamed
// to the older name first.
func Open(home string) (file *os.File, err error) {
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	f, err := durable.OpenBelow(filepath.Dir(home), home) // the agent may have replaced it with anything
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(Name); err == nil && info.Size() > MaxLog {
		_ = f.Rename(Name, Name+".1")
	}
	file, err = f.OpenFile(Name, flags)
	if errors.Is(err, durable.ErrNotRegular) && f.Rename(Name, Name+".1") == nil {
		file, err = f.OpenFile(Name, flags)
	}
	return file, err
}
