package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/owner"
)

// Unwiring undoes what was applied: our entries are removed, and a file that nobody
// else has changed becomes what it was, to the byte. The queue stays: .heartbeat is
// removed only if it contains nothing but what applying created.
//
// The state directory has what was applied, so that agents that are no longer
// declared can be unwired.

// Dropped plans the unwiring of all agents whose directories are no longer
// declared, and of generated settings files that are no longer used. It changes
// nothing.
func Dropped(f *config.Fleet, stateDir string) ([]*Plan, error) {
	dirs, flagged := map[string]bool{}, map[string]bool{}
	for _, a := range f.Agents {
		dirs[a.Dir] = true
		flagged[a.Name] = flagged[a.Name] || a.Settings.Rendered()
	}
	return unwirings(f, stateDir, nil, nil, func(name, dir string) bool {
		if dir == "" {
			return !flagged[name]
		}
		return !dirs[dir]
	})
}

// Unwire plans the unwiring of the named agents, or of all if none is named. The
// error is an *UnknownError if nothing was applied for a name that is not declared
// either. step is told how far it is, or nil.
func Unwire(f *config.Fleet, stateDir string, step Step, names ...string) ([]*Plan, error) {
	known := map[string]bool{}
	dirOf := map[string]string{}
	for _, a := range f.Agents {
		known[a.Name] = true
		dirOf[a.Dir] = a.Name
	}
	plans, err := unwirings(f, stateDir, f.Agents, step, func(name, dir string) bool {
		known[name] = true
		return len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, dirOf[dir])
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !known[name] {
			return nil, &UnknownError{Agent: name}
		}
	}
	return plans, nil
}

// UnknownError means that no agent has a name, neither now nor when something was
// applied.
type UnknownError struct{ Agent string }

// Error names it.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("cannot find agent %q: it is not declared, and nothing was applied for it", e.Agent)
}

// Step is told which agent is being looked at, and how much of it all was; nil: nobody is.
type Step func(done, of int, agent string)

func (s Step) at(done, of int, agent string) {
	if s != nil {
		s(done, of, agent)
	}
}

// unwirings makes plans for each chosen directory and generated settings file (for
// which dir is ""). The directories are those in which something was applied, and
// those of agents.
func unwirings(f *config.Fleet, stateDir string, agents []*config.Agent, step Step, chosen func(name, dir string) bool) ([]*Plan, error) {
	file := f.Path
	all, err := records(stateDir, file)
	if err != nil {
		return nil, err
	}
	var plans []*Plan
	byDir := map[string]*Plan{}
	in := func(name, dir string) *Plan {
		if byDir[dir] == nil {
			byDir[dir] = unwiring(name, dir, stateDir)
			plans = append(plans, byDir[dir])
		}
		return byDir[dir]
	}
	for _, a := range agents {
		if chosen(a.Name, a.Dir) {
			in(a.Name, a.Dir)
		}
	}
	for i, r := range all {
		if !chosen(r.Agent, r.dir()) {
			continue
		}
		step.at(i, len(all)+len(agents), r.Agent)
		p := in(r.Agent, r.dir())
		if err := p.planRetiring(r.Path); err != nil {
			return nil, fmt.Errorf("cannot unwire agent %q: %w", r.Agent, err)
		}
	}
	for i, a := range agents {
		step.at(len(all)+i, len(all)+len(agents), a.Name)
		if p := byDir[a.Dir]; p != nil && chosen(a.Name, a.Dir) {
			if err := p.planUnrecorded(a, file); err != nil {
				return nil, fmt.Errorf("cannot unwire agent %q: %w", a.Name, err)
			}
		}
	}
	for _, p := range plans {
		if err := p.planEmptyHome(); err != nil {
			return nil, fmt.Errorf("cannot unwire agent %q: %w", p.Agent.Name, err)
		}
	}
	flags, err := flagFiles(stateDir, chosen)
	return append(plans, flags...), err
}

// flagFiles plans the removal of generated settings files.
func flagFiles(stateDir string, chosen func(name, dir string) bool) ([]*Plan, error) {
	files, err := os.ReadDir(filepath.Join(stateDir, "settings"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var plans []*Plan
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || !chosen(name, "") {
			continue
		}
		p := unwiring(name, "", stateDir)
		if err := p.planFlagRemoval(filepath.Join(stateDir, "settings", f.Name())); err != nil {
			return nil, fmt.Errorf("cannot unwire agent %q: %w", name, err)
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func unwiring(name, dir, stateDir string) *Plan {
	a := &config.Agent{Name: name, Dir: dir}
	if dir != "" {
		a.Home = filepath.Join(dir, ".heartbeat")
	}
	return &Plan{Agent: a, stateDir: stateDir}
}

func (p *Plan) planFlagRemoval(path string) error {
	data, err := durable.Read(path, maxSettings)
	if err != nil {
		return err
	}
	p.file(path, append([]byte{}, data...), nil)
	p.steps = append(p.steps, func() error { return os.Remove(path) })
	return nil
}

// planEmptyHome removes .heartbeat if applying created it and nobody used it.
func (p *Plan) planEmptyHome() error {
	if p.Agent.Home == "" {
		return nil
	}
	info, err := lstat(p.Agent.Home)
	if err != nil || info == nil || !info.IsDir() {
		return err
	}
	home, err := durable.OpenBelow(p.Agent.Dir, p.Agent.Home)
	if err != nil {
		return err
	}
	defer home.Close()
	entries, err := home.Entries()
	if err != nil || !onlyOurs(entries) {
		return err
	}
	ignore, err := p.read(filepath.Join(p.Agent.Home, claim.IgnoreFile))
	if err != nil || string(ignore) != claim.Ignored {
		return err
	}
	p.Items = append(p.Items, Item{
		Path: p.Agent.Home, Change: Removed,
		file: filepath.Join(p.Agent.Home, claim.IgnoreFile), before: ignore,
	})
	p.steps = append(p.steps, func() error { return p.removeHome() })
	return nil
}

// onlyOurs reports whether a .heartbeat contains only what applying put there.
func onlyOurs(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == claim.IgnoreFile }) &&
		!slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return e.Name() != claim.IgnoreFile && e.Name() != owner.OriginFile
		})
}

// removeHome removes .heartbeat unless something has come into it.
func (p *Plan) removeHome() error {
	home, err := within(p.Agent.Dir, ".heartbeat")
	if err != nil {
		return err
	}
	defer home.Close()
	entries, err := home.Entries()
	if err != nil || !onlyOurs(entries) {
		return err
	}
	for _, e := range entries {
		if err := home.Remove(e.Name()); err != nil {
			return err
		}
	}
	return inside(p.Agent.Dir, func(agent *durable.Folder) error { return agent.Remove(".heartbeat") })
}

// Unapply does what Dropped or Unwire planned. If a scheduler runs the agent's
// directory, the error is a *RunningError: its session would lose its hooks.
func (p *Plan) Unapply() error {
	unlock, err := lock(p.stateDir)
	if err != nil {
		return fmt.Errorf("cannot unwire agent %q: %w", p.Agent.Name, err)
	}
	defer unlock()
	if info, err := os.Stat(p.Agent.Dir); err == nil && info.IsDir() {
		release, err := flock.TryLock(p.Agent.Dir)
		if errors.Is(err, flock.ErrHeld) {
			return &RunningError{Agent: p.Agent.Name, Dir: p.Agent.Dir}
		}
		if err != nil {
			return fmt.Errorf("cannot unwire agent %q: %w", p.Agent.Name, err)
		}
		defer release()
	}
	if err := p.perform(); err != nil {
		return fmt.Errorf("cannot unwire agent %q: %w", p.Agent.Name, err)
	}
	return nil
}

// RunningError means that a scheduler runs the directory of an agent that was to be
// unwired.
type RunningError struct{ Agent, Dir string }

// Error names the agent and its directory.
func (e *RunningError) Error() string {
	return fmt.Sprintf("cannot unwire agent %q: heartbeat runs in %q", e.Agent, e.Dir)
}

// Hint says what to do.
func (e *RunningError) Hint() string {
	return "stop or reload `heartbeat run` first, which may be another fleet's: heartbeat status says it; then try again"
}
