package claim

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"heartbeat/config"
)

// TestWhatCannotBeWiredIsSaidOnce: a folder that nobody can write in was
// complained of twice in one error, by who wires it and by who makes the queue's
// folder.
func TestWhatCannotBeWiredIsSaidOnce(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	agent := &config.Agent{Name: "a", Dir: gone, Home: filepath.Join(gone, ".heartbeat")}
	unwired := errors.New("cannot wire it")
	for _, wired := range []error{unwired, nil} {
		err := Furnish(agent, func() error { return wired })
		if wired != nil && err != wired || wired == nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("wiring: %v, furnished: %v", wired, err)
		}
	}
}
