package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
)

// knownFile is what Remember keeps of a fleet's file.
type knownFile struct {
	At time.Time `json:"at"`
	// Fleet is the name, which may depend on where a link led.
	Fleet string        `json:"fleet"`
	Texts []config.Text `json:"texts"`
	// Folders are the agents' directories as they were.
	Folders config.Folders `json:"folders,omitempty"`
}

// Remember keeps a configuration that was run or applied, so that an operator can
// still reach the fleet while its file is being edited.
func Remember(f *config.Fleet) error {
	path, err := rememberedPath(f.Path)
	if err == nil {
		err = state.Save(path, knownFile{At: time.Now(), Fleet: f.Name, Texts: f.Texts, Folders: f.Folders})
	}
	if err == nil {
		err = errors.Join(sweep(filepath.Dir(path), filepath.Base(path)), forgetFormer(f))
	}
	if err != nil {
		return fmt.Errorf("cannot remember the configuration: %w", err)
	}
	return nil
}

// forgetFormer removes what was kept for a fleet's file under paths that it had before.
func forgetFormer(f *config.Fleet) (err error) {
	dir, err := state.Path(f.Name)
	if err != nil {
		return err
	}
	for _, was := range readOwner(dir).Also {
		path, noBase := state.OfFile(was)
		if gone := os.Remove(path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone, noBase)
		}
	}
	return err
}

// Forget removes what Remember kept for a fleet's file: it contains the values of
// env:.
func Forget(f *config.Fleet) error {
	path, err := rememberedPath(f.Path)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = sweep(filepath.Dir(path), filepath.Base(path))
	}
	if err != nil {
		return fmt.Errorf("cannot forget the configuration: %w", err)
	}
	return nil
}

// Recall returns the configuration that Remember last kept for the fleet's file at
// path, and when. If there is none, the error is fs.ErrNotExist.
func Recall(path string) (*config.Fleet, time.Time, error) {
	r, err := recall(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	f, err := config.Recall(r.Texts, r.Folders)
	if err != nil {
		return nil, time.Time{}, err
	}
	f.Name = r.Fleet
	return f, r.At, nil
}

// RecallFolders returns the agents' directories that Remember last kept for the
// fleet's file at path; none if that cannot be read.
func RecallFolders(path string) config.Folders {
	r, err := recall(path)
	if err != nil {
		return nil
	}
	return r.Folders
}

func recall(path string) (r knownFile, err error) {
	if path, err = rememberedPath(path); err == nil {
		err = state.Load(path, &r)
	}
	return r, err
}

// rememberedPath is where it is kept of a fleet's file, by whatever path.
func rememberedPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, dir := range state.All() {
		if of := Of(dir); of == path {
			break
		} else if of != "" && samePlace(of, path) {
			path = of
			break
		}
	}
	return state.OfFile(path)
}
