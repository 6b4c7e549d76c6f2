package workspace

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/hook/settings"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/state"
)

// What was applied is kept under the fleet's name and the settings file's path. If
// the fleet got another name, or its folder was moved, this finds it again: what we
// wrote is remembered until it is gone.

// others returns what other state directories say about a settings file: the fleet
// had another name, or another fleet has the directory too. A settings file is on
// record once, with whoever applied last.
func (p *Plan) others(path string) []*record {
	var all []*record
	for _, dir := range state.Beside(p.stateDir) {
		// A record that cannot be read is ignored: it must not prevent this fleet
		// from working.
		if r, err := recorded(recordDir(dir, path)); err == nil && r != nil && r.Path == path {
			if r.File == "" {
				r.File = owner.Of(dir)
			}
			all = append(all, r)
		}
	}
	return all
}

// mostMoved is how many records are searched at most for one of a folder that was
// moved: each agent searches all of them.
const mostMoved = 500

// moved returns the records of a settings file from before its folder was moved:
// those for a folder that is gone and had the same place relative to its fleet's
// file as this one, or belonged to this agent, if path has hooks of ours that no
// record explains. The agent may have got another name meanwhile.
func (p *Plan) moved(path string) ([]*record, error) {
	if hooked, err := p.hooked(path); err != nil || !hooked {
		return nil, nil // whoever uses the file says so
	}
	var found []*record
	looked := 0
	for i, dir := range append([]string{p.stateDir}, state.Beside(p.stateDir)...) {
		of := owner.Of(dir)
		if i > 0 && (of == "" || strange(of, "", p.stateDir)) {
			continue // of a fleet that has not moved
		}
		kept, err := os.ReadDir(filepath.Join(dir, "applied"))
		if looked += len(kept); err != nil || looked > mostMoved {
			continue
		}
		all, err := recordsIn(dir)
		if err != nil && i == 0 {
			return nil, err
		}
		for _, old := range all {
			named := i == 0 && old.Agent == p.Agent.Name
			if !gone(old, path) || !named && !p.stoodIn(cmp.Or(old.File, of), old) {
				continue
			}
			if whole, err := recorded(old.kept); err == nil && whole != nil {
				found = append(found, whole)
			}
		}
	}
	return found, nil
}

// gone reports whether a record is about such a file, in a folder that is gone.
func gone(old *record, path string) bool {
	dir, err := lstat(old.dir())
	return filepath.Base(old.Path) == filepath.Base(path) && err == nil && dir == nil
}

// stoodIn reports whether the agent's directory is where a record's was, relative
// to a fleet's file that is gone.
func (p *Plan) stoodIn(file string, old *record) bool {
	if file == "" || !owner.Gone(file) {
		return false
	}
	rel, err := filepath.Rel(filepath.Dir(file), old.dir())
	return err == nil && filepath.IsLocal(rel) && rel != "." && strings.HasSuffix(p.Agent.Dir, string(filepath.Separator)+rel)
}

// hooked reports whether a settings file has hooks of ours.
func (p *Plan) hooked(path string) (bool, error) {
	current, err := p.read(path)
	if err != nil || current == nil {
		return false, err
	}
	report, err := settings.Inspect(current)
	if err != nil {
		return false, err
	}
	for _, h := range report.Hooks {
		if h.Ours {
			return true, nil
		}
	}
	return false, nil
}
