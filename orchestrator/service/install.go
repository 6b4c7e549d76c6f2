package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// Installation is a unit on this machine: its file, and the programs that tell the
// service manager about it.
type Installation struct {
	// Name is what the manager calls the service, Path where its file belongs.
	Name, Path string
	// Text is what install writes there.
	Text string
	// start, stop and forget are what the manager is told: to run a unit whose file is
	// there, to end it while its file is there, and that the file is gone.
	start, stop, forget []Command
	// enabled and active ask about it; logs print what it has said.
	enabled, active Command
	// Logs prints what the service has said last.
	Logs Command
}

// Command is a command line.
type Command struct {
	Argv []string `json:"argv"`
	// MayFail is true where a failure means that there was nothing to do.
	MayFail bool `json:"-"`
	// Until is a command that fails once this one's work is done, which goes on after it
	// has returned; Within is how long that may take.
	Until  []string      `json:"-"`
	Within time.Duration `json:"-"`
}

// String is what to type.
func (c Command) String() string {
	words := make([]string, len(c.Argv))
	for i, w := range c.Argv {
		words[i] = settings.Quote(w)
	}
	return strings.Join(words, " ")
}

// SystemdInstallation is the unit as a service of systemd, below home for the user's
// own manager; config is its folder for configuration ($XDG_CONFIG_HOME), or "".
func (u *Unit) SystemdInstallation(home, config string) (*Installation, error) {
	text, err := u.Systemd()
	if err != nil {
		return nil, err
	}
	systemctl := []string{"systemctl", "--user"}
	logs := []string{"journalctl", "--user"}
	folder := "/etc/systemd/system"
	switch {
	case u.System:
		systemctl, logs = []string{"systemctl"}, []string{"journalctl"}
	case filepath.IsAbs(config):
		folder = filepath.Join(config, "systemd", "user")
	default:
		folder = filepath.Join(home, ".config", "systemd", "user")
	}
	name := u.Name() + ".service"
	tell := func(words ...string) Command {
		return Command{Argv: append(append([]string{}, systemctl...), words...)}
	}
	return &Installation{
		Name: name, Path: filepath.Join(folder, name), Text: text,
		start:   []Command{tell("daemon-reload"), tell("enable", "--now", name)},
		stop:    []Command{tell("disable", "--now", name)},
		forget:  []Command{tell("daemon-reload")},
		enabled: tell("is-enabled", name), active: tell("is-active", name),
		Logs: Command{Argv: append(logs, "--no-pager", "-n", "20", "-u", name)},
	}, nil
}

// LaunchdInstallation is the property list as a service of launchd; uid is of who
// runs it.
func (u *Unit) LaunchdInstallation(home string, uid int) (*Installation, error) {
	logs := filepath.Join(home, "Library", "Logs")
	text, err := u.Launchd(logs)
	if err != nil {
		return nil, err
	}
	domain, folder := fmt.Sprintf("gui/%d", uid), filepath.Join(home, "Library", "LaunchAgents")
	if u.System {
		domain, folder = "system", "/Library/LaunchDaemons"
	}
	path := filepath.Join(folder, u.label()+".plist")
	service := domain + "/" + u.label()
	shown := []string{"launchctl", "print", service}
	// A property list is only read again after it is out, and it is out once it has ended.
	out := Command{Argv: []string{"launchctl", "bootout", service}, MayFail: true, Until: shown, Within: u.StopTimeout + outMargin}
	return &Installation{
		Name: u.label(), Path: path, Text: text,
		start: []Command{out, {Argv: []string{"launchctl", "enable", service}}, {Argv: []string{"launchctl", "bootstrap", domain, path}}},
		stop:  []Command{out},
		// It is loaded at each login as long as its file is there, and it is not disabled.
		enabled: Command{Argv: []string{"launchctl", "print-disabled", domain}}, active: Command{Argv: shown},
		Logs: Command{Argv: []string{"tail", "-n", "20", filepath.Join(logs, u.Name()+".log")}},
	}, nil
}

// outMargin is what launchd may take in addition to the stop of a service.
const outMargin = 10 * time.Second

// Steps are the commands that install, or uninstall, runs.
func (i *Installation) Steps(uninstall bool) []Command {
	if uninstall {
		return append(append([]Command{}, i.stop...), i.forget...)
	}
	return i.start
}

// mark is in the first lines of what this room renders. A file without it is
// somebody else's.
const mark = "heartbeat service"

// mostUnit bounds what is read of a unit.
const mostUnit = 1 << 20

// Found is what stands in the place of a unit.
type Found string

// What may be found there.
const (
	Missing Found = "missing"
	Current Found = "current" // what install would write
	Other   Found = "other"   // ours, of another version, binary or file
	Foreign Found = "foreign" // not ours
)

// Find looks at what stands in the unit's place.
func (i *Installation) Find() (Found, error) {
	info, err := os.Lstat(i.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing, nil
	case err != nil:
		return Foreign, fmt.Errorf("cannot look at the unit: %w", err)
	case !info.Mode().IsRegular():
		return Foreign, nil
	}
	data, err := durable.Read(i.Path, mostUnit)
	switch {
	case err != nil:
		return Foreign, fmt.Errorf("cannot read the unit: %w", err)
	case string(data) == i.Text:
		return Current, nil
	case bytes.Contains(data[:min(len(data), 400)], []byte(mark)):
		return Other, nil
	}
	return Foreign, nil
}

// Write puts the unit in its place, for everybody to read.
func (i *Installation) Write() error {
	dir := filepath.Dir(i.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write the unit: %w", err)
	}
	if info, err := os.Lstat(i.Path); err == nil && !info.Mode().IsRegular() {
		if err := os.Remove(i.Path); err != nil { // a link, which is replaced and not followed
			return fmt.Errorf("cannot write the unit: %w", err)
		}
	}
	folder, err := durable.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot write the unit: %w", err)
	}
	return errors.Join(folder.ReplaceAs(filepath.Base(i.Path), []byte(i.Text), 0o644), folder.Close())
}

// Remove removes the unit's file.
func (i *Installation) Remove() error {
	if err := os.Remove(i.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the unit: %w", err)
	}
	return nil
}

// CommandError is a command of a service manager that failed.
type CommandError struct {
	Command Command
	Said    string // what it printed on stderr
	err     error
}

// Error names the command and what it said.
func (e *CommandError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("cannot run %q: %v", e.Command.String(), e.err)
	}
	return fmt.Sprintf("cannot run %q: %v: %s", e.Command.String(), e.err, e.Said)
}

// Unwrap returns the cause; exec.ErrNotFound where there is no such program.
func (e *CommandError) Unwrap() error { return e.err }

// ExitCode is that of an error: the command's own means something else.
func (*CommandError) ExitCode() int { return 1 }

// Hint says what to do.
func (e *CommandError) Hint() string {
	switch {
	case errors.Is(e.err, exec.ErrNotFound):
		return "this machine has no such service manager: heartbeat service print writes the unit for another one; in a container, heartbeat run is the entry point"
	case e.Command.Argv[0] == "launchctl" && strings.Contains(strings.ToLower(e.Said), "domain"):
		return "nobody is logged in at this machine's screen: log in there once; or: heartbeat service install --system as root"
	case strings.Contains(e.Said, "connect to bus") || strings.Contains(e.Said, "connect to user scope bus"):
		return `your own service manager does not run: "sudo loginctl enable-linger USER" starts it, then log in again; or: heartbeat service install --system as root`
	}
	return ""
}

// Run runs a command and returns what it printed on stdout. The error is a
// *CommandError.
func (c Command) Run(ctx context.Context) (out string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	out = strings.TrimSpace(stdout.String())
	if err != nil && !c.MayFail {
		said := strings.TrimSpace(stderr.String())
		return out, &CommandError{Command: c, Said: said[:min(len(said), mostSaid)], err: err}
	}
	return out, c.await(ctx)
}

// awaitEvery is how often Until is asked.
const awaitEvery = 200 * time.Millisecond

// await waits for Until.
func (c Command) await(ctx context.Context) error {
	if c.Until == nil {
		return nil
	}
	late, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	for {
		err := exec.CommandContext(late, c.Until[0], c.Until[1:]...).Run()
		switch {
		case late.Err() != nil && ctx.Err() == nil:
			return &CommandError{Command: c, err: fmt.Errorf("it has not ended within %s", c.Within)}
		case err != nil:
			return ctx.Err()
		}
		select {
		case <-late.Done():
		case <-time.After(awaitEvery):
		}
	}
}

// mostSaid is how many bytes of what a command prints are repeated.
const mostSaid = 1000

// State is what the service manager says of a unit.
type State struct {
	Enabled string `json:"enabled"` // enabled, disabled, not-found …; "" where it cannot be asked
	Active  string `json:"active"`  // active, inactive, failed …
}

// Ask asks the service manager. The error is a *CommandError where it cannot be
// asked.
func (i *Installation) Ask(ctx context.Context) (State, error) {
	if i.enabled.Argv[0] == "launchctl" {
		return i.askLaunchd(ctx)
	}
	enabled, err := i.enabled.Run(ctx)
	if err != nil && enabled == "" { // otherwise it says a state and fails
		if failed, ok := errors.AsType[*CommandError](err); !ok || !strings.Contains(failed.Said, "No such file") || errors.Is(err, exec.ErrNotFound) {
			return State{}, err
		}
		enabled = "not-found"
	}
	active, err := i.active.Run(ctx)
	if err != nil && active == "" {
		return State{}, err
	}
	return State{Enabled: enabled, Active: active}, nil
}

// askLaunchd is Ask for launchd, which shows a service while it is loaded.
func (i *Installation) askLaunchd(ctx context.Context) (State, error) {
	said, err := i.active.Run(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return State{}, err
	case err == nil && strings.Contains(said, "state = running"):
		return State{Enabled: "enabled", Active: "active"}, nil
	case err == nil:
		return State{Enabled: "enabled", Active: "inactive"}, nil
	}
	s := State{Enabled: "enabled", Active: "inactive"} // at the next login
	if _, err := os.Lstat(i.Path); errors.Is(err, fs.ErrNotExist) {
		s.Enabled = "not-found"
		return s, nil
	}
	disabled, err := i.enabled.Run(ctx)
	for line := range strings.Lines(disabled) {
		if name, is, _ := strings.Cut(strings.TrimSpace(line), " => "); err == nil && name == `"`+i.Name+`"` && (is == "disabled" || is == "true") {
			s.Enabled = "disabled"
		}
	}
	return s, nil
}
