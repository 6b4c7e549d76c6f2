package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
)

// A fleet's state is kept under its name, and two files may have the same name:
// most often because a folder was copied. A state belongs to the file that was
// applied or run first, as long as that file exists and has the name; nothing that
// belongs to another file is touched. A file that has moved keeps its state.
//
// A file is known by its absolute path as it was typed. Links on it are not followed:
// a deploy changes where one leads, and so does a mounted ConfigMap.

// ownerFile is in a state directory and says which file it belongs to.
const ownerFile = "owner.json"

type owner struct {
	File string `json:"file"` // absolute
	// Typed is false if links in File's folder were followed, as versions before
	// 2026-12 did.
	Typed bool `json:"typed,omitempty"`
	// Also are former values of File, for the same file.
	Also []string `json:"also,omitempty"`
	// Before are files that it belonged to and that gave up the name.
	Before []string `json:"before,omitempty"`
}

// Path is StateDir, but creates nothing.
func Path(f *config.Fleet) (string, error) {
	dir, err := state.Path(f.Name)
	return dir, errors.Join(err, CheckName(f))
}

// StateDir returns the state directory of a fleet and creates it. The error is a
// *TakenError if it belongs to another file; the path is returned with any error,
// for callers that only read.
func StateDir(f *config.Fleet) (string, error) {
	dir, err := state.Path(f.Name)
	if err == nil {
		err = errors.Join(CheckName(f), checkApart(f, dir))
	}
	if err != nil {
		return dir, err
	}
	return state.Dir(f.Name)
}

// RuntimeDir returns the directory of a fleet's sockets, like StateDir.
func RuntimeDir(f *config.Fleet) (string, error) {
	if err := CheckName(f); err != nil {
		return "", err
	}
	return state.RuntimeDir(f.Name)
}

// FormerRuntimeDirs returns the directories of sockets under the names that a
// fleet's file had before: a run keeps the name that it began with.
func FormerRuntimeDirs(f *config.Fleet) []string {
	own, err := state.Path(f.Name)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, dir := range state.Beside(own) {
		if !IsOf(dir, f.Path) {
			continue
		}
		if runtime, err := state.RuntimeDir(filepath.Base(dir)); err == nil {
			dirs = append(dirs, runtime)
		}
	}
	return dirs
}

// claimWait is how long Claim waits for another one.
const claimWait = 10 * time.Second

// Claim is StateDir for callers that act for a fleet: from now on the state belongs
// to its file.
func Claim(f *config.Fleet) (string, error) {
	dir, err := state.Dir(f.Name)
	if err != nil {
		return dir, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	unlock, err := flock.Lock(ctx, dir)
	if err != nil {
		return dir, fmt.Errorf("cannot use the state of fleet %q: %w", f.Name, err)
	}
	defer unlock()
	if err := errors.Join(CheckName(f), checkApart(f, dir)); err != nil {
		return dir, err
	}
	was := readOwner(dir)
	now := was.claimedBy(f, dir)
	if reflect.DeepEqual(was, now) {
		return dir, nil
	}
	if err := sweep(dir, ownerFile); err != nil {
		return dir, err
	}
	return dir, state.Save(filepath.Join(dir, ownerFile), now)
}

// claimedBy is the owner once a fleet's file, which may have the state, has claimed it.
func (o owner) claimedBy(f *config.Fleet, dir string) owner {
	now := owner{File: f.Path, Typed: true, Also: o.Also, Before: o.Before}
	switch {
	case o.File == "", o.File == f.Path, Gone(o.File):
	case !o.isOf(f, dir):
		now.Before = add(now.Before, o.File)
	case o.Typed && !isBehind(o.File, f.Path):
		return o // one of two paths stays its name
	default:
		now.Also = add(now.Also, o.File)
	}
	return now
}

func add(all []string, one string) []string {
	if slices.Contains(all, one) {
		return all
	}
	return append(slices.Clone(all), one)
}

// sweep removes what killed replacements of a file left. Nobody may be replacing it
// now.
func sweep(dir, name string) error {
	folder, err := durable.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.SweepOf(name), folder.Close())
}

// Of returns the file that a state directory belongs to, or "".
func Of(dir string) string { return readOwner(dir).File }

// IsOf reports whether a state directory belongs to a file, by this path or another one.
func IsOf(dir, file string) bool {
	o := readOwner(dir)
	return o.File == file || slices.Contains(o.Also, file) || o.File != "" && samePlace(o.File, file)
}

// BelongsTo reports whether a state directory belongs to a file, or did until that
// file gave up the name.
func BelongsTo(dir, file string) bool {
	return IsOf(dir, file) || slices.Contains(readOwner(dir).Before, file)
}

func readOwner(dir string) owner {
	var o owner
	if state.Load(filepath.Join(dir, ownerFile), &o) != nil {
		return owner{} // nobody's: the next Claim writes it
	}
	return o
}

// CheckName returns a *TakenError if the name of a fleet, and so its state, belongs
// to another file.
func CheckName(f *config.Fleet) error {
	dir, err := state.Path(f.Name)
	if err != nil {
		return err
	}
	o := readOwner(dir)
	other := o.File
	if other == "" || other == f.Path || Gone(other) || o.isOf(f, dir) {
		return nil // if it is gone, it has moved here
	}
	linked := sameFile(other, f.Path)
	if !linked && !says(other, f.Name) {
		return nil
	}
	return &TakenError{Name: f.Name, File: f.Path, Other: other, StateDir: dir, linked: linked}
}

// checkApart returns a *ReachError if the state of a fleet is in an agent's
// directory, or the other way round: the agent could write what the scheduler acts
// on.
func checkApart(f *config.Fleet, stateDir string) error {
	if real, err := filepath.EvalSymlinks(stateDir); err == nil {
		stateDir = real
	}
	for _, a := range f.Agents {
		if below(a.Dir, stateDir) || below(stateDir, a.Dir) {
			return &ReachError{Agent: a.Name, Dir: a.Dir, StateDir: stateDir}
		}
	}
	return nil
}

// below reports whether a path is a folder or is inside it.
func below(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// ReachError means that an agent could write the state of its fleet.
type ReachError struct{ Agent, Dir, StateDir string }

// Error names both folders.
func (e *ReachError) Error() string {
	return fmt.Sprintf("cannot keep the fleet's state in %q: the directory of agent %q is %q, and it could write there", e.StateDir, e.Agent, e.Dir)
}

// Hint says what to do.
func (e *ReachError) Hint() string {
	return "set " + state.EnvBase + " to a folder outside of all agents' directories, or give the agent another dir:"
}

// Gone reports whether there is no fleet's file at path, as far as can be told.
func Gone(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.Mode().IsRegular()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// says reports whether a fleet's file, to which the state of that name belongs, has the
// name, as far as can be told.
func says(path, name string) bool {
	f, err := config.Load(path)
	return err != nil || !f.Named || f.Name == name
}

// isOneFile reports whether a path leads to a fleet's file at present.
func isOneFile(path string, f *config.Fleet) bool {
	return samePlace(path, f.Path) || !f.Relative && sameFile(path, f.Path)
}

// isOf reports whether the state in dir, which has another path as its owner, is that of a
// fleet's file all the same.
func (o owner) isOf(f *config.Fleet, dir string) bool {
	return isOneFile(o.File, f) || !o.Typed && wasTyped(f, dir)
}

// wasTyped reports whether a version that followed the links on a file's path has run the
// fleet by the path that it has now: it kept that only in the agents' directories.
func wasTyped(f *config.Fleet, stateDir string) bool {
	return slices.ContainsFunc(f.Agents, func(a *config.Agent) bool {
		o := OriginOf(a)
		return o.File == f.Path && o.StateDir == stateDir
	})
}

// samePlace reports whether two paths name one file in one folder. (A link to a file is
// another one where its paths begin at its folder.)
func samePlace(a, b string) bool {
	return filepath.Base(a) == filepath.Base(b) && sameFile(filepath.Dir(a), filepath.Dir(b))
}

// isBehind reports whether a path is where the links on another one lead, which may
// change: the other one is the file's name.
func isBehind(path, link string) bool {
	real, err := filepath.EvalSymlinks(filepath.Dir(link))
	return err == nil && path == filepath.Join(real, filepath.Base(link))
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// TakenError means that the name of a fleet belongs to another file that still
// exists.
type TakenError struct {
	Name, File string
	Other      string // the other one's file
	StateDir   string
	linked     bool // both are one file in two folders
}

// Error names both files.
func (e *TakenError) Error() string {
	if e.linked {
		return fmt.Sprintf("cannot use %q as fleet %q: it is the same file as %q, and its relative paths mean others here", e.File, e.Name, e.Other)
	}
	return fmt.Sprintf("cannot use %q as fleet %q: that name, and the state in %q, is that of %q", e.File, e.Name, e.StateDir, e.Other)
}

// Hint says what to do.
func (e *TakenError) Hint() string {
	if e.linked {
		return fmt.Sprintf("name the fleet's file as %s, or make this one a copy with a `name:` of its own", e.Other)
	}
	return fmt.Sprintf("give one of the two another `name:`; where %s is an old copy, remove it", e.Other)
}

// BeginAnew returns the triggers that will start over once a fleet's file is run.
// If something cannot be read, the run itself says so.
func BeginAnew(f *config.Fleet) []memory.Anew {
	dir, err := state.Path(f.Name)
	if err != nil || CheckName(f) != nil {
		return nil
	}
	anew, err := memory.Preview(dir, f.Agents, time.Now())
	if err != nil {
		return nil
	}
	return anew
}
