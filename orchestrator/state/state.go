// Package state says where a fleet's state is kept, out of the agents' reach, and
// keeps small JSON files there. The content of the files is up to their writers;
// this room owns the paths and the way to and from the disk.
//
// The state directory holds the fleet's store, what was applied, and what may be
// killed; the runtime directory holds sockets. Both are private to the user (0700,
// files 0600). No queue depends on them.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"heartbeat/hook/durable"
	"heartbeat/hook/owned"
)

// EnvBase replaces the base of all state directories.
const EnvBase = "HEARTBEAT_STATE_DIR"

// maxFile limits what Load reads, in bytes.
const maxFile = 256 << 20

// maxSocketDir is the longest path of a directory for sockets: sun_path has 104
// bytes on macOS and 108 on Linux, and the name of the socket needs some of them.
const maxSocketDir = 72

// Dir returns the state directory of a fleet and creates it:
// $HEARTBEAT_STATE_DIR/FLEET, or $XDG_STATE_HOME/heartbeat/FLEET, or
// ~/.local/state/heartbeat/FLEET. A relative XDG_STATE_HOME is ignored, as the XDG
// Base Directory Specification requires.
func Dir(fleet string) (string, error) {
	dir, err := Path(fleet)
	if err != nil {
		return "", err
	}
	if err := private(dir); err != nil {
		return dir, &NoPlaceError{err}
	}
	if err := owned.CheckTree(dir); err != nil {
		return dir, &NoPlaceError{fmt.Errorf("somebody else could replace %q: %w", dir, err)}
	}
	return dir, nil
}

// NoPlaceError means that a fleet's state cannot be kept where it would be.
type NoPlaceError struct{ why error }

// Error says why.
func (e *NoPlaceError) Error() string { return "cannot keep the fleet's state: " + e.why.Error() }

// Unwrap returns why.
func (e *NoPlaceError) Unwrap() error { return e.why }

// Hint says how to mend the place, or to name another one.
func (e *NoPlaceError) Hint() string {
	if other, ok := errors.AsType[*owned.Error](e.why); ok && other.Fix != "" {
		return other.Fix + " " + strconv.Quote(other.Path) + " if it is yours"
	}
	return "export " + EnvBase + "=FOLDER, one that you can write to, for all commands of the fleet"
}

// Path is Dir, but creates nothing.
func Path(fleet string) (string, error) {
	base, err := base()
	return filepath.Join(base, fleet), err
}

// OfFile returns the path for what is kept about a fleet's file, whose name for the
// fleet cannot be read while the file is broken: .files/HASH.json beside the state
// directories. It creates nothing.
func OfFile(path string) (string, error) {
	base, err := base()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(base, ".files", hex.EncodeToString(sum[:8])+".json"), nil
}

// OfClient returns the path for what is kept of an installed client, which any fleet of
// this user may use: .clients/ID.json beside the state directories. It creates nothing.
func OfClient(id string) (string, error) {
	base, err := base()
	return filepath.Join(base, ".clients", id+".json"), err
}

// Used reports whether a path is a state directory of this user in which something
// was kept.
func Used(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !ours(info) {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// Beside lists the other state directories of this user, in the order of their
// names.
func Beside(dir string) []string {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if other := filepath.Join(filepath.Dir(dir), e.Name()); e.IsDir() && other != dir {
			all = append(all, other)
		}
	}
	return all
}

// All lists the state directories of this user.
func All() []string {
	dir, err := base()
	if err != nil {
		return nil
	}
	return Beside(filepath.Join(dir, "."+EnvBase)) // which none is called
}

func base() (string, error) {
	if dir := os.Getenv(EnvBase); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("cannot find the state directory %q: %w", dir, err)
		}
		return abs, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "heartbeat"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &NoPlaceError{err}
	}
	return filepath.Join(home, ".local", "state", "heartbeat"), nil
}

// RuntimeDir returns the directory of a fleet's sockets and creates it:
// $XDG_RUNTIME_DIR/heartbeat/FLEET, or run/ in the state directory, or a private
// directory under the temporary one, or under /tmp: the first one whose path is
// short enough for a socket, and which nobody else can replace.
func RuntimeDir(fleet string) (string, error) {
	stateDir, err := Dir(fleet)
	if err != nil {
		return "", err
	}
	var failed []error
	for _, dir := range runtimeDirs(fleet, stateDir) {
		if len(dir) > maxSocketDir {
			continue
		}
		if err = kept(dir); err == nil {
			return dir, nil
		}
		failed = append(failed, err)
	}
	return "", errors.Join(failed...)
}

// runtimeDirs returns the paths of which one becomes the runtime directory.
func runtimeDirs(fleet, stateDir string) []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && os.Getenv(EnvBase) == "" {
		dirs = append(dirs, filepath.Join(dir, "heartbeat", fleet))
	}
	sum := sha256.Sum256([]byte(stateDir))
	name := "heartbeat-" + strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:6])
	return append(dirs, filepath.Join(stateDir, "run"), filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
}

// kept creates a private directory that nobody else can replace.
func kept(dir string) error {
	for _, step := range []func(string) error{owned.CheckPlace, private, owned.CheckPlace} {
		if err := step(dir); err != nil {
			return fmt.Errorf("cannot use %q for sockets: %w", dir, err)
		}
	}
	return nil
}

// private creates a directory that only its owner, this user, can enter.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make directory %q: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("cannot look at directory %q: %w", dir, err)
	}
	// In a folder that others can write, somebody else may have created it.
	if !info.IsDir() || !ours(info) {
		return fmt.Errorf("cannot use %q: it is not a directory of this user", dir)
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make directory %q private: %w", dir, err)
	}
	return nil
}

// Save replaces the file with v as JSON, durably, and creates its folder.
func Save(path string, v any) error { return saveInto(path, v, durable.Replace) }

// saveInto is save, and creates the file's folder.
func saveInto(path string, v any, replace func(string, []byte) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	return save(path, v, replace)
}

func save(path string, v any, replace func(string, []byte) error) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	if err := replace(path, append(data, '\n')); err != nil {
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	return nil
}

// Put is Save without a sync: a reader sees the whole old or the whole new content;
// after a power cut there may be neither, or a damaged file. It is for what only people
// read and the next run rewrites, and for what a caller can do without.
func Put(path string, v any) error { return saveInto(path, v, durable.Put) }

// ErrDamaged means that a file was read and does not contain what Save writes.
var ErrDamaged = errors.New("the file is damaged")

// unusableError is about a file that cannot be loaded as long as it exists, with
// what a person can do: a missing file is created again.
type unusableError struct {
	path string
	why  error
}

// Unusable returns an error about a file that cannot be read as long as it exists, with what a
// person can do. It matches ErrDamaged.
func Unusable(path string, why error) error {
	return &unusableError{path, fmt.Errorf("%w: %w", ErrDamaged, why)}
}

// IsUnusable reports whether a file cannot be read as long as it exists: it is damaged, or
// something else than a file.
func IsUnusable(err error) bool {
	_, is := errors.AsType[*unusableError](err)
	return is
}

func (e *unusableError) Error() string { return fmt.Sprintf("cannot load %q: %v", e.path, e.why) }
func (e *unusableError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *unusableError) Hint() string {
	return fmt.Sprintf("move it away, what it held is lost: mv '%s' '%s.damaged'", e.path, e.path)
}

// Load reads what Save wrote into v. If the file does not exist, the error is
// fs.ErrNotExist and v is untouched. If it is damaged, the error is ErrDamaged.
func Load(path string, v any) error { return load(path, v, durable.Read) }

func load(path string, v any, read func(string, int64) ([]byte, error)) error {
	data, err := read(path, maxFile)
	switch {
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return &unusableError{path, err}
	case err != nil:
		return fmt.Errorf("cannot load %q: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return Unusable(path, err)
	}
	return nil
}
