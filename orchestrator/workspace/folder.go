package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/owner"
)

// linkError means that there is a link, or something else that is not a file, in
// place of one of the client's settings files or our folder.
type linkError struct{ path, what string }

// Error names the path.
func (e *linkError) Error() string {
	return fmt.Sprintf("cannot use %q: it is not %s", e.path, e.what)
}

// Hint says what to do.
func (e *linkError) Hint() string {
	return "links are not followed out of an agent's directory: put a real file or folder there, or set `settings: flag`"
}

// planHome plans the agent's directory and .heartbeat in it.
func (p *Plan) planHome() error {
	dir, err := lstat(p.Agent.Dir)
	if err != nil {
		return err
	}
	if dir != nil && !dir.IsDir() {
		return fmt.Errorf("cannot use %q: it is not a folder", p.Agent.Dir)
	}
	home, err := lstat(p.Agent.Home)
	if err != nil {
		return err
	}
	if home != nil && !home.IsDir() {
		return &linkError{p.Agent.Home, "a folder"}
	}
	beside, err := lstat(filepath.Dir(p.Agent.Inbox))
	if err != nil {
		return err
	}
	ignore, err := p.read(filepath.Join(p.Agent.Home, claim.IgnoreFile))
	if err != nil {
		return err
	}
	item := Item{Path: p.Agent.Home, Change: Unchanged}
	switch {
	case home == nil:
		item.Change = Created
	case ignore == nil || beside == nil:
		item.Change = Changed
	}
	if ignore == nil {
		item.file, item.after = filepath.Join(p.Agent.Home, claim.IgnoreFile), []byte(claim.Ignored)
	}
	p.Items = append(p.Items, item)
	if home == nil || beside == nil || ignore == nil {
		p.steps = append(p.steps, func() error { return MakeHome(p.Agent) })
	}
	return nil
}

// lstat describes a path, nil when there is nothing.
func lstat(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if missing(err) {
		return nil, nil
	}
	return info, err
}

// missing reports whether an error says that there is nothing at a path; there may
// be a file in place of one of its folders.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// MakeHome creates an agent's directory with its folder .heartbeat, which git
// ignores as a whole, and the inbox's folder, unless they exist.
func MakeHome(a *config.Agent) error {
	// The workspace itself belongs to the person: it is created like any other
	// folder.
	if err := os.MkdirAll(a.Dir, 0o755); err != nil {
		return fmt.Errorf("cannot make directory %q: %w", a.Dir, err)
	}
	if err := claim.MakeHome(a); err != nil {
		return err
	}
	if dir := filepath.Dir(a.Inbox); dir != a.Home {
		beside, err := durable.MakeBelow(a.Dir, dir)
		if err != nil {
			return err
		}
		if err := beside.Close(); err != nil {
			return err
		}
	}
	home, err := within(a.Dir, ".heartbeat")
	if err != nil {
		return err
	}
	defer home.Close()
	if _, err := home.Stat(claim.IgnoreFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return home.Replace(claim.IgnoreFile, []byte(claim.Ignored))
}

// within opens a folder of the agent's directory, which must really be in it: a
// link to somewhere else is refused, even one that is put there meanwhile.
func within(dir, name string) (*durable.Folder, error) {
	path := filepath.Join(dir, name)
	folder, err := durable.OpenBelow(dir, path)
	if !errors.Is(err, durable.ErrNotFolder) {
		return folder, err
	}
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() {
		return nil, syscall.ENOTDIR // a file contains no folder
	}
	return nil, &linkError{path, "a folder"}
}

// inside runs do with the agent's directory itself.
func inside(dir string, do func(agent *durable.Folder) error) error {
	agent, err := durable.OpenBelow(dir, dir)
	if err != nil {
		return err
	}
	return errors.Join(do(agent), agent.Close())
}

// read returns a file of a folder of the agent's directory, or nil if it does not
// exist.
func (p *Plan) read(path string) ([]byte, error) {
	folder, err := within(p.Agent.Dir, filepath.Base(filepath.Dir(path)))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	data, err := folder.Read(filepath.Base(path), maxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, durable.ErrNotRegular):
		return nil, &linkError{path, "a file"}
	case err != nil:
		return nil, err
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// write replaces a settings file, unless it is no longer what the plan was made
// for. It keeps the file's permissions.
func (p *Plan) write(path string, planned, next []byte) error {
	dir := filepath.Base(filepath.Dir(path))
	if err := inside(p.Agent.Dir, func(agent *durable.Folder) error {
		err := agent.Root().Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	folder, err := within(p.Agent.Dir, dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := p.unchanged(path, planned); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := folder.Stat(filepath.Base(path)); err == nil {
		mode = info.Mode().Perm()
	}
	return folder.ReplaceAs(filepath.Base(path), next, mode)
}

// sweep removes the temporary files that a killed apply left. The caller holds the
// lock: nobody else replaces those files now but those in .heartbeat, and who does that
// begins again (durable.Folder.SweepOf).
func (p *Plan) sweep() error {
	project, local := p.target(config.SettingsProject), p.target(config.SettingsLocal)
	ours := func(name string) (*durable.Folder, error) { return within(p.Agent.Dir, name) }
	var errs []error
	clean := func(open func(string) (*durable.Folder, error), dir string, names ...string) {
		folder, err := open(dir)
		if missing(err) {
			return
		}
		if err == nil {
			err = errors.Join(folder.SweepOf(names...), folder.Close())
		}
		errs = append(errs, err)
	}
	if p.Agent.Dir != "" {
		clean(ours, filepath.Base(filepath.Dir(project)), filepath.Base(project), filepath.Base(local))
		clean(ours, filepath.Base(p.Agent.Home), claim.IgnoreFile, owner.OriginFile)
		for _, path := range []string{project, local} {
			dir := recordDir(p.stateDir, path)
			clean(durable.Open, dir, recordFile, originalFile)
			if r, err := recorded(dir); err == nil && r == nil {
				errs = append(errs, os.RemoveAll(dir)) // half created, or half removed
			}
		}
	}
	flag := p.target(config.SettingsFlag)
	clean(durable.Open, filepath.Dir(flag), filepath.Base(flag))
	return errors.Join(errs...)
}

// stands makes sure that a settings file is on disk as planned, before it is forgotten what
// else it may contain: also where there was nothing to write, another may have written.
func (p *Plan) stands(path string, planned []byte) error {
	if err := p.unchanged(path, planned); err != nil {
		return err
	}
	return p.sync(path)
}

// sync writes a settings file as it is now, and its name, to the disk.
func (p *Plan) sync(path string) error {
	folder, err := within(p.Agent.Dir, filepath.Base(filepath.Dir(path)))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	file, err := folder.OpenFile(filepath.Base(path), os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder.Sync()
	case err != nil:
		return err
	}
	defer file.Close()
	return errors.Join(folder.SyncData(file, filepath.Base(path)), folder.Sync())
}

// unchanged checks that a file is what the plan was made for.
func (p *Plan) unchanged(path string, planned []byte) error {
	current, err := p.read(path)
	if err != nil {
		return err
	}
	if string(current) != string(planned) || (current == nil) != (planned == nil) {
		return &durable.ChangedError{Path: path}
	}
	return nil
}

// findFolder finds out whether .claude is ours to remove later.
func (p *Plan) findFolder() error {
	folder, err := lstat(filepath.Join(p.Agent.Dir, client.Claude.Settings.Folder))
	if err != nil {
		return err
	}
	p.madeFolder = folder == nil
	for _, t := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal} {
		rec, err := p.applied(p.target(t))
		if err != nil {
			return err
		}
		p.madeFolder = p.madeFolder || rec != nil && rec.MadeFolder
	}
	return nil
}

// remove removes a settings file, and its folder if that was created for it and is
// empty.
func (p *Plan) remove(path string, planned []byte, withFolder bool) error {
	folder, err := within(p.Agent.Dir, filepath.Base(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := p.unchanged(path, planned); err != nil {
		return err
	}
	if err := folder.Remove(filepath.Base(path)); err != nil {
		return err
	}
	if err := folder.Sync(); err != nil || !withFolder {
		return err
	}
	return inside(p.Agent.Dir, func(agent *durable.Folder) error {
		err := agent.Remove(filepath.Base(filepath.Dir(path)))
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}
