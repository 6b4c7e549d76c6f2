package hook

import (
	"crypto/subtle"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// fence decides whether a hook call belongs to our live session.
type fence struct {
	home   string
	terms  *Terms
	client Process // of the client that called the hook
}

// passes reports whether the call belongs to the live session in home: the
// environment has its token, it has not ended, its shim lives, and the client is
// the process that was bound at its first event, if one was. Everything else (a
// person's claude in the same directory, a nested claude -p that inherited the
// environment, a client whose shim died) does not concern us. The record is
// returned as it was read.
func (f *fence) passes(getenv func(string) string) (*Record, bool) {
	token := getenv(EnvSession)
	f.home = getenv(EnvHome)
	if token == "" || !filepath.IsAbs(f.home) {
		return nil, false
	}
	folder, err := openHome(f.home)
	if err != nil {
		return nil, false // there is no session, and nowhere to say so
	}
	defer folder.Close()
	if f.terms, err = termsOf(getenv); err != nil {
		logLine(f.home, "hook ignored: %v", err)
		return nil, false
	}
	shown, err := readRecord(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logLine(f.home, "hook ignored: cannot read the session record: %v", err)
	}
	if err != nil {
		return nil, false
	}
	r := f.terms.record(shown)
	if !r.lives(token, folder) {
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

// lives reports whether this is the record of the live session that has this token
// and whose .heartbeat folder is home.
func (r *Record) lives(token string, home *durable.Folder) bool {
	if subtle.ConstantTimeCompare([]byte(TokenHash(token)), []byte(r.TokenHash)) != 1 ||
		r.Phase == Ended || !filepath.IsAbs(r.Inbox) {
		return false
	}
	beside := home
	if path := filepath.Dir(r.Inbox); path != home.Path() {
		var err error
		if beside, err = durable.OpenBelow(filepath.Dir(home.Path()), path); err != nil {
			return false
		}
		defer beside.Close()
	}
	return inbox.SessionLivesIn(beside)
}

// caller returns the client that runs this hook, which may be a nested one.
func caller(getenv func(string) string) (Process, error) {
	pid, err := strconv.Atoi(getenv(client.Claude.Variables.Caller))
	if err != nil {
		return Process{}, err
	}
	start, err := startTime(pid)
	return Process{PID: pid, Start: start}, err
}
