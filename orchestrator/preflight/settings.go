// Package preflight determines, before a session is started, whether the client
// will start without a question and call our hooks, and whose Stop hooks are called
// beside them. `heartbeat run` and `heartbeat doctor` ask the same questions here.
// What it says about the client was measured in Claude Code 2.1.329.
//
// It reads what the client will read, as it is now, and changes nothing. An agent
// can write its own settings files: reads are limited, and nothing is run.
package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// Kind says where settings come from. Of two that contradict each other, the one
// that comes later in this list counts.
type Kind string

// The kinds.
const (
	User    Kind = "user"
	Project Kind = "project"
	Local   Kind = "local"
	Flag    Kind = "flag" // --settings in the agent's command
	Managed Kind = "managed"
)

// Settings are one document of settings that the client reads.
type Settings struct {
	Kind Kind
	// Name is the file's path, or what else it is called.
	Name string
	Data []byte
	// Err is why it cannot be read, or not be understood; then Report is nil.
	Err    error
	Report *settings.Report
}

// Client is how an agent's client is started, as far as that decides which settings
// count.
type Client struct {
	Dir     string
	Command []string
	// Target is where our hooks are.
	Target config.SettingsTarget
	// Env is the environment of its sessions.
	Env map[string]string
	// Managed is the folder of the administrator's settings; "": the client's own
	// location.
	Managed string
	// Own is the hooks' command line, which counts as ours in addition to those
	// that settings.Ours knows.
	Own string
	// Applied is what we have written into settings files of the directory.
	Applied []settings.Want
	// Agent is its name, Program the one that its command names, and Self true if
	// that is this program, which is not checked. Ours is how our own command lines
	// begin; "": heartbeat.
	Agent, Program string
	Self           bool
	Ours           string
	// Exposed says who else can change what decides what its sessions do; nil: nobody.
	Exposed error
	// EnvFile is the agent's, or "", and NoEnv why it is not in Env, or nil.
	EnvFile string
	NoEnv   error
	// Mode is the permission mode of its sessions, Root true where they are root's.
	Mode string
	Root bool
	// Typed is how a person starts it as its sessions see the user; "": by its program.
	Typed string
	// System is the operating system; "": this one.
	System string
}

// ClientOf returns the client of an agent whose sessions are started from an
// environment.
func ClientOf(a *config.Agent, base []string) Client {
	list, err := a.Environ(base)
	env := make(map[string]string, len(list))
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	if a.StandsIn() { // it reads no variable but HOME
		env["HOME"] = cmp.Or(a.StandInHome(), env["HOME"])
		delete(env, client.Claude.Variables.Config)
	}
	c := Client{
		Dir: a.Dir, Command: a.Command, Target: a.Settings, Env: env,
		Agent: a.Name, Self: a.Self, EnvFile: a.EnvFile, NoEnv: err, Exposed: a.Exposed(),
		Mode: a.Permissions.Mode, Root: os.Geteuid() == 0,
	}
	if argv := a.Argv(); len(argv) > 0 {
		c.Program = argv[0]
	}
	c.Typed = client.Claude.Typed(c.Program, c.Getter(), client.In(base), settings.Quote)
	return c
}

func (c Client) typed() string { return cmp.Or(c.Typed, c.Program, client.Claude.Program) }

func (c Client) system() string { return cmp.Or(c.System, runtime.GOOS) }

// Getter looks up a variable of its sessions.
func (c Client) Getter() client.Getter { return func(name string) string { return c.Env[name] } }

// ConfigDir returns where the client finds the user's settings.
func (c Client) ConfigDir() string { return client.Claude.ConfigDir(c.Getter()) }

// maxSettings limits what is read of the client's files.
const maxSettings = 16 << 20

// Settings reads all settings that the client reads beside a file of ours, those
// with the lowest precedence first. A file that does not exist is left out.
func (c Client) Settings() []Settings {
	f, known := c.flags(), client.Claude.Settings
	var all []Settings
	for _, s := range []Settings{
		{Kind: User, Name: filepath.Join(c.ConfigDir(), known.File)},
		{Kind: Project, Name: filepath.Join(c.Dir, known.Folder, known.File)},
		{Kind: Local, Name: filepath.Join(c.Dir, known.Folder, known.Local)},
	} {
		if f.reads(s.Kind) && !slices.ContainsFunc(all, func(o Settings) bool { return o.Name == s.Name }) { // in the home they are one file
			all = c.add(all, s)
		}
	}
	if f.settings != "" {
		all = append(all, c.passed())
	}
	for _, path := range c.managed() {
		all = c.add(all, Settings{Kind: Managed, Name: path})
	}
	if f.managed != "" {
		all = append(all, c.understood(Settings{Kind: Managed, Name: "--managed-settings in command:", Data: []byte(f.managed)}))
	}
	return all
}

// add reads a file, if it exists.
func (c Client) add(all []Settings, s Settings) []Settings {
	s.Data, s.Err = read(s.Name)
	if errors.Is(s.Err, fs.ErrNotExist) {
		return all
	}
	return append(all, c.understood(s))
}

// read reads a file that may be a link, as the client does.
func read(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return durable.Read(real, maxSettings)
}

func (c Client) understood(s Settings) Settings {
	if s.Err == nil {
		s.Report, s.Err = settings.Inspect(s.Data, c.Own)
	}
	return s
}

// Passed returns the settings that the command passes by --settings, which a file
// of ours replaces. It is false if it passes none.
func (c Client) Passed() (Settings, bool) {
	if readFlags(c.Command).settings == "" {
		return Settings{}, false
	}
	return c.passed(), true
}

// passed reads what --settings names: a file, relative to the directory that the
// client starts in, or the settings themselves.
func (c Client) passed() Settings {
	arg := readFlags(c.Command).settings
	if isJSON(arg) {
		return c.understood(Settings{Kind: Flag, Name: "--settings in command:", Data: []byte(arg)})
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(c.Dir, arg)
	}
	s := Settings{Kind: Flag, Name: arg}
	if s.Data, s.Err = read(arg); s.Err != nil {
		s.Err = fmt.Errorf("cannot read the --settings of command: %w", s.Err)
	}
	return c.understood(s)
}

// managed lists the administrator's files: one, and those of the folder beside it
// in the order of their names, each with precedence over those before it.
func (c Client) managed() []string {
	dir := cmp.Or(c.Managed, client.Claude.Settings.Managed(c.system()))
	more, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "managed-settings.d", "*.json"))
	slices.Sort(more)
	return append([]string{filepath.Join(dir, "managed-settings.json")}, more...)
}

// escapeGlob escapes the special characters of a path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
