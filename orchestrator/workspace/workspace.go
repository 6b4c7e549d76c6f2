// Package workspace brings an agent's directory in line with its declaration: the
// folder .heartbeat, and our hooks and permission rules in one of the client's
// settings files. Planning reads and decides, applying writes what was planned;
// applying a second time changes nothing.
//
// The first original of each settings file is kept in the state directory before
// anything is written. Nothing in the directory is trusted: no link out of it is
// followed, and everything that is not ours keeps its bytes.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
)

// Change says what applying does, or did, to a file or folder.
type Change string

// The changes.
const (
	Created   Change = "created"
	Changed   Change = "changed"
	Unchanged Change = "unchanged"
	Removed   Change = "removed"
)

// Item is one file or folder of a plan.
type Item struct {
	Path   string
	Change Change

	// file is what Before and After are about: Path, or a file in the folder Path.
	file          string
	before, after []byte // nil: no file
}

// Plan is what applying would do to one agent's directory.
type Plan struct {
	Agent *config.Agent
	Items []Item
	// Notes are what a person should know about unwiring: what could not be undone,
	// and why.
	Notes []string
	// SettingsFile is the file with the hooks that is passed by --settings, or "":
	// the hooks are in the directory.
	SettingsFile string
	// Obstacles are what prevents our hooks from working, Others the Stop hooks
	// that run beside ours, by all settings that the client reads.
	Obstacles []preflight.Obstacle
	Others    preflight.Others
	// Foreign is what files in the directory tell the client in addition to ours.
	Foreign []preflight.Foreign
	// Timed are prompts of the directory that the client gives itself; Timetable is
	// true if the agent's sessions get them.
	Timed     []preflight.Foreign
	Timetable bool
	// StatusLine is the command line of the status line that the client would show,
	// or "".
	StatusLine string

	rendered []byte // the content of SettingsFile
	stateDir string
	hook     *Hook
	steps    []func() error
	// madeFolder is true if .claude did not exist before ours.
	madeFolder bool
}

// maxSettings limits the settings files that are read.
const maxSettings = 16 << 20

// lockWait is how long applying waits for another apply.
const lockWait = 10 * time.Second

// New makes a plan for an agent. It changes nothing.
func New(a *config.Agent, stateDir string, h *Hook) (*Plan, error) {
	p := &Plan{Agent: a, stateDir: stateDir, hook: h}
	if err := p.plan(); err != nil {
		return nil, fmt.Errorf("cannot wire agent %q: %w", a.Name, err)
	}
	return p, nil
}

// Apply plans and applies for an agent while no other apply of this fleet does:
// parallel ones run one after the other, each with what the one before left. What
// others change meanwhile (a client that keeps a permission, a person, another fleet
// in the same directory) is planned for again.
func Apply(a *config.Agent, stateDir string, h *Hook) (*Plan, error) {
	if err := a.Exposed(); err != nil {
		return nil, fmt.Errorf("cannot wire agent %q: %w", a.Name, err)
	}
	unlock, err := lock(stateDir)
	if err != nil {
		return nil, fmt.Errorf("cannot wire agent %q: %w", a.Name, err)
	}
	defer unlock()
	return asItIs(func() (*Plan, error) {
		p, err := New(a, stateDir, h)
		if err != nil {
			return nil, err
		}
		return p, p.run()
	})
}

// mostPlans is far more than who writes a file now and then makes necessary.
const mostPlans = 100

// asItIs plans and performs again as long as somebody else changes a file in between.
func asItIs[T any](perform func() (T, error)) (T, error) {
	for plans := 1; ; plans++ {
		done, err := perform()
		if _, changed := errors.AsType[*durable.ChangedError](err); !changed || plans == mostPlans {
			return done, err
		}
	}
}

func (p *Plan) plan() error {
	if err := p.planHome(); err != nil {
		return err
	}
	if err := p.findFolder(); err != nil {
		return err
	}
	want := wanted(p.Agent, p.hook.Command)
	chosen := p.target(p.Agent.Settings)
	for _, t := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal} {
		var err error
		if path := p.target(t); path == chosen {
			err = p.planSettings(path, want)
		} else {
			err = p.planRetiring(path)
		}
		if err != nil {
			return err
		}
	}
	if p.Agent.Settings.Rendered() {
		if err := p.planFlag(chosen, want); err != nil {
			return err
		}
	}
	p.inspect()
	return nil
}

// target returns the path of a settings file of the agent.
func (p *Plan) target(t config.SettingsTarget) string {
	switch t {
	case config.SettingsLocal:
		return filepath.Join(p.Agent.Dir, client.Claude.Settings.Folder, client.Claude.Settings.Local)
	case config.SettingsFlag, config.SettingsOnly:
		return filepath.Join(p.stateDir, "settings", p.Agent.Name+".json")
	}
	return filepath.Join(p.Agent.Dir, client.Claude.Settings.Folder, client.Claude.Settings.File)
}

func wanted(a *config.Agent, command string) settings.Want {
	return settings.Want{
		Command: command, Timeouts: map[string]int{"Stop": int(a.Policy().StopTimeout() / time.Second)},
		Allow: append(slices.Clone(a.Permissions.Allow), settings.Grants()...), Deny: slices.Concat(settings.Guards(a.Guarded...), settings.Denials(), a.Permissions.Deny),
	}
}

// planSettings merges what is wanted into a settings file of the directory.
func (p *Plan) planSettings(path string, want settings.Want) error {
	current, err := p.read(path)
	if err != nil {
		return err
	}
	rec, err := p.applied(path)
	if err != nil {
		return err
	}
	if rec == nil {
		rec = &record{Path: path, Existed: current != nil, MadeFolder: p.madeFolder, fresh: true}
		if rec.original, err = withoutOurs(current); err != nil {
			return fmt.Errorf("cannot change %q: %w", path, err)
		}
	}
	next, changed, err := settings.Update(current, rec.originalOrNil(), want, rec.merged()...)
	if err != nil {
		return fmt.Errorf("cannot change %q: %w", path, err)
	}
	p.file(path, current, next)
	now, settled, stale := rec.now(p.Agent.Name, owner.Of(p.stateDir), want)
	if stale {
		p.steps = append(p.steps, func() error { return p.keep(now) })
	}
	if changed {
		p.steps = append(p.steps, func() error { return p.write(path, current, next) })
	}
	if len(now.Earlier)+len(now.Also) > 0 {
		p.steps = append(p.steps, func() error { return p.settle(settled, next) })
	}
	return nil
}

// planRetiring removes our entries from a settings file that was the target before.
func (p *Plan) planRetiring(path string) error {
	rec, err := p.applied(path)
	if err != nil || rec == nil {
		return err
	}
	current, err := p.read(path)
	if err != nil {
		return err
	}
	next, err := settings.Restore(current, rec.originalOrNil(), rec.merged()...)
	if err != nil {
		return fmt.Errorf("cannot change %q: %w", path, err)
	}
	switch {
	case current == nil:
		next = nil
	case next == nil:
		p.file(path, current, nil)
		p.steps = append(p.steps, func() error { return p.remove(path, current, rec.MadeFolder) })
	default:
		p.file(path, current, next)
		if !bytes.Equal(next, current) {
			p.steps = append(p.steps, func() error { return p.write(path, current, next) })
		}
	}
	p.steps = append(p.steps, func() error { return p.forget(rec, next) })
	return nil
}

// planFlag renders the settings file in the state directory. The client uses only
// the last --settings, so it includes what the agent's command passes, as it is
// now.
func (p *Plan) planFlag(path string, want settings.Want) error {
	current, err := durable.Read(path, maxSettings)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	passed, _ := p.client().Passed()
	if passed.Err != nil {
		return p.client().Blocked([]preflight.Obstacle{{
			Code: preflight.NoSettings, Seen: passed.Err.Error(), Fix: "correct --settings in command:",
		}})
	}
	next, _, err := settings.Merge(passed.Data, want)
	if err != nil {
		return fmt.Errorf("cannot render our settings into %s: %w", passed.Name, err)
	}
	p.SettingsFile, p.rendered = path, next
	p.file(path, current, next)
	if passed.Data != nil {
		p.Items[len(p.Items)-1].file = "" // it may hold secrets, which no diff shows
	}
	if !bytes.Equal(current, next) {
		p.steps = append(p.steps, func() error {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return durable.Replace(path, next)
		})
	}
	return nil
}

// file adds an item about a file that exists, or will; nil means that it does not.
func (p *Plan) file(path string, before, after []byte) {
	c := Unchanged
	switch {
	case before == nil:
		c = Created
	case after == nil:
		c = Removed
	case !bytes.Equal(before, after):
		c = Changed
	}
	p.Items = append(p.Items, Item{Path: path, Change: c, file: path, before: before, after: after})
}

// Changes reports whether applying would change anything.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Items, func(i Item) bool { return i.Change != Unchanged })
}

// run wires. The caller holds the lock. After an error, planning and running again
// continues from what is there.
func (p *Plan) run() error {
	err := p.hook.Install()
	if err == nil {
		err = p.perform()
	}
	if err != nil {
		return fmt.Errorf("cannot wire agent %q: %w", p.Agent.Name, err)
	}
	return nil
}

// perform does the steps while no other fleet changes the directory.
func (p *Plan) perform() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := flock.LockFolder(ctx, p.Agent.Home)
	switch {
	case err == nil:
		defer unlock()
	case !missing(err): // else it is made by a step, or there is none
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	for _, step := range p.steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// lock prevents others of this fleet from applying.
func lock(stateDir string) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	return flock.Lock(ctx, filepath.Join(stateDir, ".apply-lock"))
}
