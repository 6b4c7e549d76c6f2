package hook

import (
	"crypto/subtle"
	"path/filepath"
	"strconv"

	"heartbeat/hook/flock"
)

// fence says whose call this is.
type fence struct {
	home   string
	client Process // of the client that called the hook
}

// passes reports whether the call belongs to the live session in home: the
// environment has its token, it has not ended, its shim lives, and the client
// is the process that was bound at its first event, if one was. Everything
// else (a person's claude in the same directory, a nested claude -p that
// inherited the environment, a client whose shim died) is none of our
// business. The record comes back as it was read.
func (f *fence) passes(getenv func(string) string) (*Record, bool) {
	token := getenv(EnvSession)
	f.home = getenv(EnvHome)
	if token == "" || !filepath.IsAbs(f.home) {
		return nil, false
	}
	r, err := ReadRecord(f.home)
	if err != nil {
		logLine(f.home, "hook ignored: %v", err)
		return nil, false
	}
	if r == nil || !r.lives(token) {
		return nil, false
	}
	if f.client, err = caller(getenv); err != nil {
		logLine(f.home, "hook ignored: %v", err)
		return nil, false
	}
	if !r.BoundAt.IsZero() && r.Client != f.client {
		return nil, false
	}
	return r, true
}

func (r *Record) lives(token string) bool {
	return subtle.ConstantTimeCompare([]byte(TokenHash(token)), []byte(r.TokenHash)) == 1 &&
		r.Phase != Ended && filepath.IsAbs(r.Inbox) && flock.Held(sessionLock(r.Inbox))
}

// sessionLock is the lock that a live session's shim holds.
func sessionLock(inboxPath string) string {
	return filepath.Join(filepath.Dir(inboxPath), ".session-lock")
}

// caller names the client that runs this hook. The client sets CLAUDE_PID to
// its own pid for each hook, also in a nested one (measured in 2.1.329).
func caller(getenv func(string) string) (Process, error) {
	pid, err := strconv.Atoi(getenv("CLAUDE_PID"))
	if err != nil {
		return Process{}, err
	}
	start, err := startTime(pid)
	return Process{PID: pid, Start: start}, err
}
