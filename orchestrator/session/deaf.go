package session

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/handover"
)

// deafness is how long a client may work on its prompt without a call of one of
// our hooks. The client waits for SessionStart's hooks before it takes the
// prompt, so this only has to allow for a slow machine. Tests have a shorter one.
var deafness = 5 * time.Second

// lookForWork is how often to look for the transcript.
const lookForWork = time.Second

// deaf detects that a client works without our hooks.
type deaf struct {
	path     string  // of the transcript; "": not known yet
	from     int64   // nothing before it is this session's
	hookLog  written // hook.log, at the start
	since    time.Time
	lookedAt time.Time
}

// listen records what exists before the client is started.
func (s *shim) listen() {
	if s.spec.Resume != "" {
		s.deaf.path, s.deaf.from = s.conversation(s.spec.Resume)
	}
	s.deaf.hookLog = writtenTo(s.hookLog())
}

func (s *shim) hookLog() string { return filepath.Join(s.spec.Home, "hook.log") }

// written tells whether somebody has written into a file, or could not for lack of room: a
// hook then leaves the time.
type written struct {
	size int64
	at   time.Time
}

func writtenTo(path string) written {
	info, err := os.Lstat(path)
	if err != nil {
		return written{}
	}
	return written{info.Size(), info.ModTime()}
}

// deafSince is since when the client has worked on its prompt although none of our
// hooks was called; zero: it does not, or they are called and say in hook.log why
// they cannot work, or have tried to.
func (s *shim) deafSince(now time.Time) time.Time {
	d := &s.deaf
	if !s.record.BoundAt.IsZero() {
		return time.Time{}
	}
	if d.since.IsZero() && now.Sub(d.lookedAt) >= lookForWork {
		d.lookedAt = now
		if d.path == "" {
			d.path, _ = s.conversation(cmp.Or(s.spec.Resume, s.spec.Session))
		}
		if d.path != "" && handover.Prompted(d.path, d.from) {
			d.since = now
		}
	}
	if !d.since.IsZero() && writtenTo(s.hookLog()) != d.hookLog {
		return time.Time{}
	}
	return d.since
}
