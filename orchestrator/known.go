package orchestrator

import (
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
)

// knownFile is what Remember keeps of a fleet's file.
type knownFile struct {
	At time.Time `json:"at"`
	// Fleet is the name, which may derive from where a link has led.
	Fleet string        `json:"fleet"`
	Texts []config.Text `json:"texts"`
}

// Remember keeps a configuration that is run or was applied, so that an
// operator can still reach the fleet while its file is in the making.
func Remember(f *config.Fleet) error {
	path, err := rememberedPath(f.Path)
	if err == nil {
		err = state.Save(path, knownFile{At: time.Now(), Fleet: f.Name, Texts: f.Texts})
	}
	if err == nil {
		err = sweep(filepath.Dir(path), filepath.Base(path))
	}
	if err != nil {
		return fmt.Errorf("cannot remember the configuration: %w", err)
	}
	return nil
}

// Recall returns the configuration that Remember kept last for the fleet's
// file at path, and when. Without one the error is fs.ErrNotExist.
func Recall(path string) (*config.Fleet, time.Time, error) {
	path, err := rememberedPath(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	var r knownFile
	if err := state.Load(path, &r); err != nil {
		return nil, time.Time{}, err
	}
	f, err := config.Recall(r.Texts)
	if err != nil {
		return nil, time.Time{}, err
	}
	f.Name = r.Fleet
	return f, r.At, nil
}

func rememberedPath(path string) (string, error) {
	path, err := FileOf(path)
	if err != nil {
		return "", err
	}
	return state.OfFile(path)
}
