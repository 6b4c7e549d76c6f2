package owner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/settings"
)

// FileName is the name of a fleet's file if none is given.
const FileName = "heartbeat.yaml"

// otherEnding is another common name for it. We mention such a file but never use it:
// both could exist side by side.
const otherEnding = "heartbeat.yml"

// Find returns the fleet's file for a folder: heartbeat.yaml in it. Otherwise it goes
// up from the folder, and in each returns the file of the fleet that has it as an
// agent's directory, or heartbeat.yaml in it. The agent's fleet comes first, because an
// agent can write a file of that name into its directory. A file in dir itself is
// returned as its bare name. The error is a *NotFoundError.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", FileName, err)
	}
	none := &NotFoundError{Dir: dir}
	if isHere(dir) {
		return FileName, nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		if file := runs(at); file != "" {
			return file, nil
		}
		if at != dir && isHere(at) {
			return filepath.Join(at, FileName), nil
		}
		if other := filepath.Join(at, otherEnding); none.Near == "" && !Gone(other) {
			none.Near = other
		}
		if at == filepath.Dir(at) {
			return "", none
		}
	}
}

// NotFoundError means that no fleet's file was found. It is fs.ErrNotExist.
type NotFoundError struct {
	Dir  string // where the search started
	Near string // a file that may be meant, or ""
}

// Error says where Find looked.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("cannot find %s: it is not in %s, nor in a folder above it, and no known fleet has an agent there", FileName, e.Dir)
}

// Unwrap is fs.ErrNotExist.
func (*NotFoundError) Unwrap() error { return fs.ErrNotExist }

// Hint says what to do.
func (e *NotFoundError) Hint() string {
	if e.Near != "" {
		return "there is " + e.Near + ": heartbeat -f " + settings.Quote(e.Near) + " …"
	}
	return "heartbeat init writes a starter file; --file FILE or HEARTBEAT_FILE names another one"
}

// isHere reports whether a folder has a fleet's file: one that can be opened, or one
// that was removed while its fleet runs.
func isHere(dir string) bool {
	path := filepath.Join(dir, FileName)
	if info, err := os.Stat(path); err == nil {
		return !info.IsDir()
	}
	f, _, err := Recall(path)
	return err == nil && slices.ContainsFunc(f.Agents, func(a *config.Agent) bool { return flock.Held(a.Dir) })
}

// runs returns the file of the fleet that has a folder as an agent's directory; "" if
// none is known to. What is in the folder only says which fleet to ask: what we keep
// about that fleet, out of the agents' reach, decides.
func runs(dir string) string {
	file := OriginOf(&config.Agent{Dir: dir, Home: filepath.Join(dir, ".heartbeat")}).File
	if !filepath.IsAbs(file) || Gone(file) && !flock.Held(dir) {
		return ""
	}
	f, _, err := Recall(file)
	if err == nil && slices.ContainsFunc(f.Agents, func(a *config.Agent) bool { return a.Dir == dir || sameFile(a.Dir, dir) }) {
		return file
	}
	return ""
}

// Meant returns a file that may be meant if the named one does not exist: the same name
// with the other ending; "" if there is none.
func Meant(path string) string {
	for ending, other := range map[string]string{".yaml": ".yml", ".yml": ".yaml"} {
		if filepath.Ext(path) == ending {
			if file := path[:len(path)-len(ending)] + other; !Gone(file) {
				return file
			}
		}
	}
	return ""
}
