package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inpath"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/service"
	"heartbeat/orchestrator/state"
)

type serviceCmd struct {
	Action  string   `arg:"" enum:"print,install,uninstall,status" help:"print, install, uninstall or status."`
	Manager string   `arg:"" optional:"" enum:"systemd,launchd," default:"" help:"systemd or launchd (that of this system)."`
	System  bool     `help:"For the machine's service manager instead of your own."`
	User    string   `placeholder:"NAME" help:"With --system: who runs the fleet (you)."`
	Run     []string `placeholder:"ARG" name:"run-arg" sep:"none" help:"A further argument of \"heartbeat run\", like --run-arg=--metrics=:9464; may be given again."`
	DryRun  bool     `help:"With install or uninstall: only show what would be written and run."`
	Force   bool     `help:"With install or uninstall: replace or remove a unit that is not heartbeat's, too."`
}

// Help implements kong's HelpProvider.
func (serviceCmd) Help() string {
	return `Runs the fleet as a service of systemd or launchd: your own service manager's
or, with --system, the machine's.

install writes the unit, has the manager enable and start it, and prints what it
wrote and ran. The unit names this binary, the fleet's file and the current PATH,
which must contain claude, and allows a stop to take as long as the fleet's
shutdown-grace. Install it again when any of these change. uninstall stops the
service and removes the unit; queues and state stay. status says whether the unit
is there and current, enabled and active, and how to read its log. print only
prints the unit, with the steps to install it on stderr.

Examples:

    heartbeat service install
    heartbeat service install --dry-run
    heartbeat service install --run-arg=--metrics=:9464
    heartbeat service install --system --user agents --dry-run
    heartbeat service status
    heartbeat service uninstall --dry-run
    heartbeat service print systemd
    heartbeat service print launchd`
}

// printedUnit is a unit and what to do with it.
type printedUnit struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"`
	Steps []string `json:"steps"`
}

func (c serviceCmd) run(ctx context.Context, a *app) (result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Manager == "" {
		c.Manager = "systemd"
		if runtime.GOOS == "darwin" {
			c.Manager = "launchd"
		}
	}
	load := a.fleet
	if c.Action == "uninstall" || c.Action == "status" {
		load = a.knownFleet
	}
	fleet, err := load()
	if err != nil {
		return nil, err
	}
	if c.User == "" {
		if err := owner.CheckName(fleet); err != nil {
			return nil, err // the unit would have another one's name
		}
	}
	u, home, err := c.unit(a, fleet)
	if err != nil {
		return nil, err
	}
	if c.Action == "install" || c.Action == "print" {
		warnOfLacking(a, fleet, append(slices.Clone(u.Env), "HOME="+home))
	}
	if c.Action != "print" {
		return c.manage(ctx, a, fleet, u, home)
	}
	return c.print(a, u, home)
}

// check refuses flags that would have no effect.
func (c serviceCmd) check() error {
	if c.User != "" && !c.System {
		return usagef("heartbeat service "+c.Action+" --system --user "+c.User, "--user goes with --system")
	}
	if (c.DryRun || c.Force) && c.Action != "install" && c.Action != "uninstall" {
		return usagef("heartbeat service --help", "--dry-run and --force go with install and uninstall")
	}
	return nil
}

// print returns the unit, with the steps that install it; a person gets them as comments
// beside it.
func (c serviceCmd) print(a *app, u *service.Unit, home string) (result, error) {
	res := printedUnit{Name: u.Name()}
	var err error
	switch c.Manager {
	case "systemd":
		if res.Unit, err = u.Systemd(); err != nil {
			return nil, err
		}
		res.Steps = u.SystemdSteps()
	case "launchd":
		logs := filepath.Join(home, "Library", "Logs")
		if res.Unit, err = u.Launchd(logs); err != nil {
			return nil, err
		}
		res.Steps = u.LaunchdSteps()
	}
	if c.System {
		res.Steps = append(res.Steps, "export "+stateOf(u)+"   # in shells that ask it: heartbeat status, pause, reload")
	}
	if !a.out.json {
		for _, step := range res.Steps {
			fmt.Fprintf(a.err, "# %s\n", foreign.Line(step))
		}
	}
	return res, nil
}

func (r printedUnit) text(p *page) { p.document([]byte(r.Unit)) }

// stopMargin is what a stop takes in addition to turns and sessions' ends.
const stopMargin = 15 * time.Second

// unit collects what the service needs to know about the fleet and this machine. It
// also returns the home of the user who runs it.
func (c serviceCmd) unit(a *app, f *config.Fleet) (*service.Unit, string, error) {
	who, err := user.Current()
	if c.User != "" {
		who, err = user.Lookup(c.User)
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot find who runs the service: %w", err)
	}
	binary, err := installed()
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(binary, os.TempDir()+string(filepath.Separator)) {
		a.warn(fmt.Sprintf("%s is a temporary file; install heartbeat first (go install ./cmd/heartbeat)", binary))
	}
	u := &service.Unit{
		Fleet: f.Name, Binary: binary, File: f.Path, System: c.System, User: who.Username, Args: c.Run,
		StopTimeout: f.ShutdownGrace + longestEnd(f) + stopMargin, NoRestart: []int{exitUsage, exitConfig},
	}
	u.Env, err = c.environment(who.HomeDir)
	return u, who.HomeDir, err
}

// warnOfLacking warns of what agents' sessions log in by here and not in a service with an
// environment: everybody can read a unit, so that secrets are not in it.
func warnOfLacking(a *app, f *config.Fleet, env []string) {
	agents := map[string][]string{} // :: variable
	for _, agent := range f.Agents {
		names, err := launch.Lacking(agent, env)
		if err != nil {
			continue // doctor says it
		}
		for _, name := range names {
			agents[name] = append(agents[name], agent.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		a.warn(fmt.Sprintf("%s is set here, and sessions of the service do not have it (%s): put it into a file that only you can read, and name that in the fleet's file: defaults: {env-file: …}",
			name, someOf(agents[name])))
	}
}

// someOf lists a few names.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// longestEnd returns how long the slowest session may take from SIGTERM to SIGKILL.
func longestEnd(f *config.Fleet) time.Duration {
	var longest time.Duration
	for _, a := range f.Agents {
		longest = max(longest, a.Grace)
	}
	return longest
}

// installed returns the path of this binary: the one on PATH if that is the same
// file, because a package manager replaces what a link leads to.
func installed() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find the running binary: %w", err)
	}
	named, err := exec.LookPath("heartbeat")
	if err != nil || !filepath.IsAbs(named) {
		return self, nil
	}
	one, err := os.Stat(self)
	two, err2 := os.Stat(named)
	if errors.Join(err, err2) == nil && os.SameFile(one, two) {
		return named, nil
	}
	return self, nil
}

// kept are the variables that decide where state and logins are. Secrets are not
// among them: everybody can read a unit.
var kept = []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", client.Claude.Variables.Config}

// environment returns what the service's processes get in addition to what its
// manager sets. A service of the machine has no runtime directory, so its state
// directory is named, and takes the sockets too.
func (c serviceCmd) environment(home string) ([]string, error) {
	var paths []string
	for dir := range inpath.Folders(os.Getenv("PATH")) {
		if !slices.Contains(paths, dir) {
			paths = append(paths, dir)
		}
	}
	env := []string{"PATH=" + strings.Join(paths, string(filepath.ListSeparator))}
	base := os.Getenv(state.EnvBase)
	switch {
	case base != "":
		abs, err := filepath.Abs(base)
		if err != nil {
			return nil, fmt.Errorf("cannot find the state directory %q: %w", base, err)
		}
		env = append(env, state.EnvBase+"="+abs)
	case c.System:
		env = append(env, state.EnvBase+"="+filepath.Join(home, ".local", "state", "heartbeat"))
	}
	if c.User != "" {
		return env, nil // the rest is another user's
	}
	for _, name := range kept {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// stateOf is the variable that names the state directory.
func stateOf(u *service.Unit) string {
	i := slices.IndexFunc(u.Env, func(kv string) bool { return strings.HasPrefix(kv, state.EnvBase+"=") })
	return u.Env[i]
}
