package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/process"
)

// Barrier is a folder in the state directory where earlier versions have the file of their
// journal. Their run opens that before all else, and ends with an error that names it; their
// other commands that only read, and their send, go on. In it is note, which says why.
const (
	Barrier  = "journal.jsonl"
	note     = "a-newer-heartbeat-runs-this-fleet.txt"
	noteText = `What this fleet remembers is in heartbeat.db in the folder above. Its journal was
a file of this name; this folder stands in its place so that a heartbeat that does not know
heartbeat.db refuses to run the fleet: it would know of no pause, no budget and no fire.

Use the heartbeat that ran the fleet last, or a newer one. What the earlier version had kept
in files is in before-store/ in the folder above, as it was then. The way back to it:
heartbeat backup --as-files DIR writes what heartbeat.db holds as its files, and says what to do.
`
)

// isBarred reports whether earlier versions cannot run the fleet.
func isBarred(stateDir string) bool {
	info, err := os.Lstat(filepath.Join(stateDir, Barrier))
	return err == nil && info.IsDir()
}

// bar keeps earlier versions from running the fleet, durably.
func bar(stateDir string) error {
	if err := raise(filepath.Join(stateDir, Barrier)); err != nil {
		return fmt.Errorf("cannot keep earlier versions of heartbeat from running the fleet: %w", err)
	}
	return nil
}

func raise(path string) error {
	if _, err := os.Lstat(filepath.Join(path, note)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(path, note), []byte(noteText)); err != nil {
		return err
	}
	in, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}

// earlierLock is what a run of an earlier version holds in the state directory as long as it
// lives.
const earlierLock = ".notices-lock"

// checkEarlier returns an *EarlierError while a run of an earlier version, which knows nothing
// of the fleet's lock, has the fleet. The caller has that lock.
func checkEarlier(stateDir string) error {
	path := filepath.Join(stateDir, earlierLock)
	if !flock.Held(path) {
		return nil
	}
	return &EarlierError{Dir: stateDir, PID: flock.Holder(path)}
}

// EarlierError means that a run of an earlier version has a fleet, which keeps files: they
// cannot be taken over meanwhile.
type EarlierError struct {
	Dir string // the state directory
	PID int    // 0: not known
}

// Error says who has it.
func (e *EarlierError) Error() string {
	return fmt.Sprintf("cannot use the fleet's store in %q: an earlier version of heartbeat%s runs the fleet", e.Dir, process.Numbered(e.PID))
}

// Hint says what to do.
func (e *EarlierError) Hint() string {
	return "heartbeat stop ends it, after its turns; then heartbeat run takes over what it has kept"
}
