package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/state"
)

// record is what was merged into one settings file, and what the file was
// before: applied/HASH/applied.json with original.json beside it, in the
// state directory.
type record struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`
	// Existed is false when there was no file before ours.
	Existed bool `json:"existed"`
	// MadeFolder is true when there was not even the folder that it stands in.
	MadeFolder bool          `json:"made_folder,omitempty"`
	Want       settings.Want `json:"want"`

	original []byte
	fresh    bool // not on disk yet
}

func (r *record) originalOrNil() []byte {
	if !r.Existed {
		return nil
	}
	return r.original
}

func (r *record) same(w settings.Want) bool {
	return r.Want.Command == w.Command && reflect.DeepEqual(r.Want.Timeouts, w.Timeouts) &&
		fmt.Sprint(r.Want.Allow, r.Want.Deny, r.Want.Env) == fmt.Sprint(w.Allow, w.Deny, w.Env)
}

// dir is the agent's directory.
func (r *record) dir() string { return filepath.Dir(filepath.Dir(r.Path)) }

// records lists what was applied by this fleet, in the order of the agents'
// names and the paths.
func records(stateDir string) ([]*record, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(stateDir), "applied", "*", "applied.json"))
	if err != nil {
		return nil, err
	}
	var all []*record
	for _, file := range files {
		var r record
		if err := state.Load(file, &r); err != nil {
			return nil, err
		}
		all = append(all, &r)
	}
	slices.SortFunc(all, func(a, b *record) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.Path, b.Path))
	})
	return all, nil
}

// escapeGlob takes their meaning from the characters of a path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (p *Plan) recordDir(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(p.stateDir, "applied", hex.EncodeToString(sum[:8]))
}

// applied returns the record of a settings file, also from before its folder
// was moved, or nil.
func (p *Plan) applied(path string) (*record, error) {
	r, err := p.recorded(path)
	if err != nil || r != nil {
		return r, err
	}
	return p.moved(path)
}

// recorded returns the record that is kept for a path, or nil.
func (p *Plan) recorded(path string) (*record, error) {
	dir := p.recordDir(path)
	var r record
	err := state.Load(filepath.Join(dir, "applied.json"), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !r.Existed {
		return &r, nil
	}
	r.original, err = durable.Read(filepath.Join(dir, "original.json"), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // somebody removed it: begin anew with what is there
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the original of %q: %w", path, err)
	}
	return &r, nil
}

// keep writes a record: first the original, which stays what it was at the
// first time, then what refers to it.
func (p *Plan) keep(r *record) error {
	dir := p.recordDir(r.Path)
	if r.fresh {
		now, err := p.recorded(r.Path)
		if err != nil {
			return err
		}
		if now != nil {
			return fmt.Errorf("cannot write %q: another apply was faster", r.Path)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep the original of %q: %w", r.Path, err)
	}
	if r.fresh && r.Existed {
		if err := durable.Replace(filepath.Join(dir, "original.json"), r.original); err != nil {
			return fmt.Errorf("cannot keep the original of %q: %w", r.Path, err)
		}
	}
	return state.Save(filepath.Join(dir, "applied.json"), r)
}

func (p *Plan) forget(path string) error {
	return os.RemoveAll(p.recordDir(path))
}

// withoutOurs is the original of a file for which no record is left but which
// has our hooks already (the state directory is another one, or was removed).
func withoutOurs(current []byte) ([]byte, error) {
	report, err := settings.Inspect(current)
	if err != nil {
		return nil, err
	}
	for _, h := range report.Hooks {
		if h.Ours {
			rest, _, err := settings.Remove(current, settings.Want{Command: h.Command})
			return rest, err
		}
	}
	return current, nil
}
