package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// inspect looks at all settings files that the client reads for the agent,
// because hooks of all of them run. A file that cannot be read counts as one
// with a foreign Stop hook: then only the transcript is taken for proof.
func (p *Plan) inspect() error {
	for _, path := range []string{p.target(config.SettingsProject), p.target(config.SettingsLocal)} {
		data, err := p.read(path)
		if err != nil {
			return err
		}
		p.inspectOne(path, data)
	}
	path := filepath.Join(p.configDir(), "settings.json")
	data, err := readBounded(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.ForeignStopHooks = true
		return nil
	}
	p.inspectOne(path, data)
	return nil
}

// readBounded reads the person's own settings, which may be a link (dotfiles).
func readBounded(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return durable.Read(real, maxSettings)
}

func (p *Plan) inspectOne(path string, data []byte) {
	r, err := settings.Inspect(data, p.hook.Command)
	if err != nil {
		p.ForeignStopHooks = true
		return
	}
	p.ForeignStopHooks = p.ForeignStopHooks || r.ForeignStop
	if r.DisableAllHooks {
		p.disabledBy = path
	}
}

// configDir is where the client of the agent finds the user's settings.
func (p *Plan) configDir() string {
	if dir := p.variable("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(p.variable("HOME"), ".claude")
}

// variable is a variable as the agent's sessions see it.
func (p *Plan) variable(name string) string { return cmp.Or(p.Agent.Env[name], os.Getenv(name)) }

// Disabled returns a *DisabledError when a settings file that the client reads
// turns all hooks off, and nil otherwise.
func (p *Plan) Disabled() error {
	if p.disabledBy == "" {
		return nil
	}
	return &DisabledError{Agent: p.Agent.Name, File: p.disabledBy}
}

// DisabledError means that a settings file turns all hooks off, ours included.
type DisabledError struct{ Agent, File string }

// Error names the file.
func (e *DisabledError) Error() string {
	return fmt.Sprintf("cannot feed agent %q: %q says disableAllHooks", e.Agent, e.File)
}

// Hint says what to do.
func (e *DisabledError) Hint() string { return "remove disableAllHooks from " + e.File }
