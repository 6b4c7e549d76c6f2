package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// deniedTo returns the first file or folder of an agent's queue that this user
// may not use, or nil.
func deniedTo(a *config.Agent) *Denied {
	beside := filepath.Dir(a.Inbox)
	if d := denied(a.Dir, unix.R_OK|unix.X_OK); d != nil {
		return d
	}
	for _, dir := range []string{a.Home, beside} {
		if d := denied(dir, unix.R_OK|unix.W_OK|unix.X_OK); d != nil {
			return d
		}
	}
	for _, path := range []string{
		a.Inbox, filepath.Join(beside, inbox.CursorFile), filepath.Join(beside, inbox.HookLock), filepath.Join(beside, inbox.SessionLock),
		filepath.Join(beside, inbox.FlightFile), filepath.Join(beside, inbox.DeadFile), filepath.Join(a.Home, "session.json"),
		inbox.Urgent(a.Inbox), filepath.Join(beside, inbox.UrgentCursor), filepath.Join(beside, inbox.UrgentFlight),
	} {
		if d := denied(path, unix.R_OK|unix.W_OK); d != nil {
			return d
		}
	}
	return nil
}

// deniedState returns the first file or folder of a state directory that this
// user may not use, or nil.
func deniedState(dir string) *Denied {
	var found *Denied
	looked := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var how uint32 = unix.R_OK | unix.W_OK
		if err == nil && d.IsDir() {
			how |= unix.X_OK
		}
		if looked++; err == nil && d.Type()&(fs.ModeSymlink|fs.ModeSocket) == 0 {
			found = denied(path, how)
		}
		switch {
		case found != nil || looked > durable.MaxEntries:
			return fs.SkipAll
		case err != nil:
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// denied returns path where it is there and this user may not use it.
func denied(path string, how uint32) *Denied {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return nil // what is above it is looked at, too
	}
	if err := unix.Access(path, how); err != unix.EACCES { //nolint:errorlint // an errno is returned as it is
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return &Denied{Path: path, Mode: info.Mode().String(), Own: ok && int(st.Uid) == os.Geteuid()}
}
