package inbox

import "path/filepath"

// The files beside the inbox. Others than this room look at them, and change none.
const (
	CursorFile    = ".inbox-offset"
	FlightFile    = ".in-flight"
	DeadFile      = ".dead-letter.jsonl"
	HookLock      = ".hook-lock"    // that of Held
	SessionLock   = ".session-lock" // that of a live session's shim
	metaFile      = ".inbox-meta"
	respondedFile = ".responded"
	idsFile       = ".ids"
	outboxFile    = "outbox.jsonl"
)

// keptName is the second name of the inbox's file: when another file takes the
// inbox's place, what was queued in it can still be read there.
func (q *Queue) keptName() string { return "." + q.name + ".kept" }

// Beside is the path of a file that stands beside an inbox.
func Beside(inbox, name string) string { return filepath.Join(filepath.Dir(inbox), name) }

// DeadLetterFile is the path of the dead letters of an inbox, for those who
// want to know whether there are new ones without reading them.
func DeadLetterFile(inbox string) string { return Beside(inbox, DeadFile) }
