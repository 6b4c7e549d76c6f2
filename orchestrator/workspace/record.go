package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/state"
)

// record is what was merged into one settings file, and what the file was before:
// applied/HASH/applied.json with original.json beside it, in the state directory.
// It has everything that may have been written, until the file is known to contain
// it no more: it is written before the file, and again after it.
type record struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`
	// File is the fleet's file that applied it, or "" if that is not known.
	File string `json:"file,omitempty"`
	// Existed is false if there was no file before ours.
	Existed bool `json:"existed"`
	// MadeFolder is true if not even its folder existed.
	MadeFolder bool          `json:"made_folder,omitempty"`
	Want       settings.Want `json:"want"`
	// Earlier is what was merged before, or was going to be, and may still be in
	// the file.
	Earlier []settings.Want `json:"earlier,omitempty"`

	// Also are the folders of other records about the file, which this one has
	// absorbed: they are removed when it is settled.
	Also []string `json:"also,omitempty"`

	original []byte
	fresh    bool   // not on disk yet
	fuller   bool   // than on disk: it has absorbed others
	kept     string // the folder that it is in, or will be
}

// The files of a record.
const recordFile, originalFile = "applied.json", "original.json"

func (r *record) originalOrNil() []byte {
	if !r.Existed {
		return nil
	}
	return r.original
}

// merged returns everything that may be in the file, the last one at the end.
func (r *record) merged() []settings.Want {
	if r.Want.Command == "" {
		return r.Earlier // nothing of its own yet
	}
	return append(slices.Clone(r.Earlier), r.Want)
}

// now returns the record of a file that is to contain w, and whether it differs
// from r on disk; settled is the record for when the file is known to contain
// nothing else.
func (r *record) now(agent, file string, w settings.Want) (now, settled *record, stale bool) {
	next, last := *r, *r
	next.Agent, next.File, next.Want, next.Earlier = agent, file, w, nil
	for _, m := range r.merged() {
		if !sameWant(m, w) && !slices.ContainsFunc(next.Earlier, func(e settings.Want) bool { return sameWant(e, m) }) {
			next.Earlier = append(next.Earlier, m)
		}
	}
	last = next
	last.fresh, last.Earlier = false, nil
	return &next, &last, r.fresh || r.fuller || r.Agent != agent || r.File != file || !sameWant(r.Want, w)
}

func sameWant(a, b settings.Want) bool {
	return a.Command == b.Command && a.DefaultMode == b.DefaultMode && maps.Equal(a.Timeouts, b.Timeouts) &&
		maps.Equal(a.Env, b.Env) && slices.Equal(a.Allow, b.Allow) && slices.Equal(a.Deny, b.Deny)
}

// dir is the agent's directory.
func (r *record) dir() string { return filepath.Dir(filepath.Dir(r.Path)) }

// records lists what a fleet's file has applied, in the order of the agents' names
// and the paths: under its name, and under those that it had before.
func records(stateDir, file string) ([]*record, error) {
	dirs := []string{stateDir}
	for _, dir := range state.Beside(stateDir) {
		if file != "" && owner.BelongsTo(dir, file) {
			dirs = append(dirs, dir)
		}
	}
	var all []*record
	for i, dir := range dirs {
		found, err := recordsIn(dir)
		if err != nil && i == 0 {
			return nil, err
		}
		for _, r := range found {
			if i == 0 && !strange(r.File, file, dir) || r.File == file || i > 0 && r.File != "" && owner.IsOf(dir, r.File) && owner.IsOf(dir, file) {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *record) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.Path, b.Path))
	})
	return all, nil
}

// strange reports whether by is the file of another fleet than file, whose state is in
// stateDir, and still exists: what it has applied does not concern us.
func strange(by, file, stateDir string) bool {
	return by != "" && by != file && !owner.IsOf(stateDir, by) && !owner.Gone(by)
}

// recordsIn lists the records in a state directory, without the originals.
func recordsIn(stateDir string) ([]*record, error) {
	folders, err := os.ReadDir(filepath.Join(stateDir, "applied"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*record
	for _, folder := range folders {
		r := record{kept: filepath.Join(stateDir, "applied", folder.Name())}
		err := state.Load(filepath.Join(r.kept, recordFile), &r)
		if missing(err) {
			continue // its record is removed first
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &r)
	}
	return all, nil
}

func recordDir(stateDir, path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(stateDir, "applied", hex.EncodeToString(sum[:8]))
}

// applied returns the record of a settings file, or nil: this fleet's, with what
// others say about the file, or one from before its folder was moved.
func (p *Plan) applied(path string) (*record, error) {
	own := recordDir(p.stateDir, path)
	r, err := recorded(own)
	if err != nil {
		return nil, err
	}
	others := p.others(path)
	if r == nil && len(others) == 0 {
		if others, err = p.moved(path); err != nil || len(others) == 0 {
			return nil, err
		}
	}
	if r == nil { // the smallest original has the least of ours
		first := slices.MinFunc(others, func(a, b *record) int { return cmp.Compare(len(a.original), len(b.original)) })
		r = &record{Path: path, Existed: first.Existed, MadeFolder: first.MadeFolder, original: first.original, fresh: true, kept: own}
	}
	for _, o := range others {
		r.absorb(o)
	}
	return r, nil
}

// absorb adds what another record says about the file, which may have been written since
// r was.
func (r *record) absorb(o *record) {
	for _, m := range o.merged() {
		if !slices.ContainsFunc(r.merged(), func(have settings.Want) bool { return sameWant(have, m) }) {
			r.Earlier, r.fuller = append(r.Earlier, m), true
		}
	}
	for _, kept := range append([]string{o.kept}, o.Also...) { // what it had absorbed comes with it
		if kept != r.kept && !slices.Contains(r.Also, kept) {
			r.Also, r.fuller = append(r.Also, kept), true
		}
	}
}

// recorded returns the record that is kept in a folder, or nil.
func recorded(dir string) (*record, error) {
	r := record{kept: dir}
	err := state.Load(filepath.Join(dir, recordFile), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !r.Existed {
		return &r, nil
	}
	r.original, err = durable.Read(filepath.Join(dir, originalFile), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // somebody removed it: start over with what is there
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the original of %q: %w", r.Path, err)
	}
	return &r, nil
}

// keep writes a record: first the original, which never changes after the first
// time, then what refers to it.
func (p *Plan) keep(r *record) error {
	dir := recordDir(p.stateDir, r.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep the original of %q: %w", r.Path, err)
	}
	if r.fresh && r.Existed {
		if err := durable.Replace(filepath.Join(dir, originalFile), r.original); err != nil {
			return fmt.Errorf("cannot keep the original of %q: %w", r.Path, err)
		}
	}
	return state.Save(filepath.Join(dir, recordFile), r)
}

// settle forgets what a settings file is known to contain no more: it is on disk as
// planned. This fleet's record contains all that the others do.
func (p *Plan) settle(r *record, planned []byte) error {
	if err := p.stands(r.Path, planned); err != nil {
		return err
	}
	if err := dropRecords(r.Also); err != nil {
		return err
	}
	r.Also = nil
	return p.keep(r)
}

// forget removes the record of a settings file that contains nothing of ours.
func (p *Plan) forget(r *record, planned []byte) error {
	if err := p.stands(r.Path, planned); err != nil {
		return err
	}
	return dropRecords(append([]string{recordDir(p.stateDir, r.Path)}, r.Also...))
}

// dropRecords removes records, beginning with the file that says that there is one.
func dropRecords(dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		if err := os.Remove(filepath.Join(dir, recordFile)); err != nil && !missing(err) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// withoutOurs returns the original of a file that has no record left but already
// has our hooks (the state directory is another one, or was removed).
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
