package workspace

import (
	"os"
	"path/filepath"

	"heartbeat/hook/settings"
)

// mostMoved is up to how many records are looked through for one of a folder
// that was moved: each agent looks through all of them.
const mostMoved = 500

// moved returns the record of a settings file from before its folder was
// moved, as a fresh one for path, or nil: that of this agent for a folder that
// is gone, where path has hooks of ours that no record explains.
func (p *Plan) moved(path string) (*record, error) {
	if kept, err := os.ReadDir(filepath.Join(p.stateDir, "applied")); err != nil || len(kept) > mostMoved {
		return nil, nil
	}
	if hooked, err := p.hooked(path); err != nil || !hooked {
		return nil, nil // it is told where the file is used
	}
	all, err := records(p.stateDir)
	if err != nil {
		return nil, err
	}
	for _, old := range all {
		if old.Agent != p.Agent.Name || filepath.Base(old.Path) != filepath.Base(path) {
			continue
		}
		if dir, err := lstat(old.dir()); err != nil || dir != nil {
			continue
		}
		r, err := p.recorded(old.Path)
		if err != nil || r == nil {
			return nil, err
		}
		r.Path, r.fresh = path, true
		return r, nil
	}
	return nil, nil
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
