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

// Beside is the path of a file that stands beside an inbox.
func Beside(inbox, name string) string { return filepath.Join(filepath.Dir(inbox), name) }

// FlightFiles are the paths of the records of the entry in flight of an inbox, for
// those who want to know whether it has changed: at most one of them holds it.
func FlightFiles(inbox string) []string {
	return []string{Beside(inbox, FlightFile), Beside(inbox, UrgentFlight)}
}

// DeadLetterFile is the path of the dead letters of an inbox, for those who
// want to know whether there are new ones without reading them.
func DeadLetterFile(inbox string) string { return Beside(inbox, DeadFile) }
