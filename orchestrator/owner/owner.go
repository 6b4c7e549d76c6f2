package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// ownerFile is in a state directory and says which file it belongs to.
const ownerFile = "owner.json"

type owner struct {
	File string `json:"file"` // as FileOf has it
	// Before are files that it belonged to and that gave up the name.
	Before []string `json:"before,omitempty"`
}

// FileOf returns one spelling of a fleet's file. Links in the path of its folder
// are followed, but not the file itself: relative paths begin at the folder that it
// was named in, and a mounted ConfigMap changes where the link leads.
func FileOf(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
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
	file, err := FileOf(f.Path)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, dir := range state.Beside(own) {
		if Of(dir) != file {
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
	file, err := FileOf(f.Path)
	was := readOwner(dir)
	if err != nil || was.File == file {
		return dir, err
	}
	now := owner{File: file, Before: was.Before}
	if was.File != "" && !Gone(was.File) && !slices.Contains(now.Before, was.File) {
		now.Before = append(now.Before, was.File)
	}
	if err := sweep(dir, ownerFile); err != nil {
		return dir, err
	}
	return dir, state.Save(filepath.Join(dir, ownerFile), now)
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

// Of returns the file that a state directory belongs to, in the spelling of FileOf,
// or "".
func Of(dir string) string { return readOwner(dir).File }

// BelongsTo reports whether a state directory belongs to a file, or did until that
// file gave up the name.
func BelongsTo(dir, file string) bool {
	o := readOwner(dir)
	return o.File == file || slices.Contains(o.Before, file)
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
	other := Of(dir)
	file, err := FileOf(f.Path)
	if err != nil || other == "" || other == file {
		return err
	}
	if Gone(other) {
		return nil // it has moved here
	}
	linked := sameFile(other, file)
	switch {
	case linked && !f.Relative, sameFile(filepath.Dir(other), filepath.Dir(file)) && filepath.Base(other) == filepath.Base(file):
		return nil // by another path
	case !linked && !says(other, f.Name):
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

// says reports whether a fleet's file has a name, as far as can be told.
func says(path, name string) bool {
	f, err := config.Load(path)
	return err != nil || f.Name == name
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
