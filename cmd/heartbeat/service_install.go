package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"heartbeat/config"
	"heartbeat/orchestrator/service"
)

// managed is what was done about a service, or would be.
type managed struct {
	Manager string `json:"manager"`
	Name    string `json:"name"`
	Path    string `json:"path"`
	Done    string `json:"done"` // installed, uninstalled
	DryRun  bool   `json:"dry_run"`
	// Changed is true where the unit's file is not as it was.
	Changed  bool     `json:"changed"`
	Unit     string   `json:"unit,omitempty"`
	Commands []string `json:"commands"`
	// Do is what else is to be typed.
	Do []string `json:"do"`
}

// manage installs or uninstalls the service, or says how it is.
func (c serviceCmd) manage(ctx context.Context, a *app, f *config.Fleet, u *service.Unit, home string) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	var at *service.Installation
	var err error
	if own := os.Getenv("HOME"); !c.System && filepath.IsAbs(own) {
		home = own
	}
	if c.Manager == "launchd" {
		at, err = u.LaunchdInstallation(home, os.Getuid())
	} else {
		at, err = u.SystemdInstallation(home, os.Getenv("XDG_CONFIG_HOME"))
	}
	if err != nil {
		return nil, err
	}
	found, err := at.Find()
	if err != nil {
		return nil, err
	}
	if c.Action == "status" {
		return c.look(ctx, a, at, found)
	}
	if found == service.Foreign && !c.Force {
		return nil, &failure{
			status: exitError, hint: "look at it; --force replaces or removes it",
			err: fmt.Errorf("cannot %s the service: %s is not heartbeat's", c.Action, at.Path),
		}
	}
	if c.System && !c.DryRun && os.Geteuid() != 0 {
		return nil, &failure{status: exitError, hint: "heartbeat service print " + c.Manager + " --system prints the unit, and what to type as root", err: fmt.Errorf("cannot %s a service of the machine: only root can", c.Action)}
	}
	if c.Action == "uninstall" {
		return c.uninstall(ctx, a, at, found)
	}
	return c.install(ctx, a, f, u, at, found)
}

func (c serviceCmd) install(ctx context.Context, a *app, f *config.Fleet, u *service.Unit, at *service.Installation, found service.Found) (result, error) {
	res := managed{Manager: c.Manager, Name: at.Name, Path: at.Path, Done: "installed", DryRun: c.DryRun, Changed: found != service.Current, Unit: at.Text}
	if live, err := askStatus(ctx, f); err == nil && found == service.Missing {
		a.warn(fmt.Sprintf("process %d runs the fleet already: the service waits until it has ended; %s stop", live.PID, a.ours()))
	}
	if found == service.Other && c.Manager != "launchd" { // which is told to run it again
		res.Do = append(res.Do, c.restartOf(at)+"   # what runs keeps the unit that it was started with")
	}
	res.Do = append(res.Do, c.lingering(u)...)
	if c.System {
		res.Do = append(res.Do, "export "+stateOf(u)+"   # in shells that ask it: heartbeat status, pause, reload")
	}
	if res.Changed && !c.DryRun {
		if _, err := at.Ask(ctx); err != nil { // before anything is written
			return nil, fmt.Errorf("cannot install the service: %w", err)
		}
		if err := at.Write(); err != nil {
			return nil, err
		}
	}
	steps := at.Steps(false)
	if c.runsAlready(ctx, at, found) {
		steps = nil
	}
	err := res.tell(ctx, a, steps)
	if err != nil && !c.DryRun {
		err = fmt.Errorf("cannot start the service, whose unit is in %s: %w", at.Path, err)
	}
	return res, err
}

func (c serviceCmd) uninstall(ctx context.Context, a *app, at *service.Installation, found service.Found) (result, error) {
	res := managed{Manager: c.Manager, Name: at.Name, Path: at.Path, Done: "uninstalled", DryRun: c.DryRun}
	if found == service.Missing {
		return res, nil
	}
	steps := at.Steps(true)
	stop, forget := steps[:1], steps[1:]
	err := res.tell(ctx, a, stop)
	if err != nil && !c.Force {
		return nil, &failure{
			status: exitError, hint: "--force removes the unit all the same",
			err: fmt.Errorf("cannot stop the service, whose unit stays in %s: %w", at.Path, err),
		}
	}
	if !c.DryRun {
		if err := at.Remove(); err != nil {
			return nil, err
		}
	}
	res.Changed = true
	if err != nil {
		a.warn(err.Error())
		return res, nil
	}
	return res, res.tell(ctx, a, forget)
}

// tell runs commands, or only notes them.
func (m *managed) tell(ctx context.Context, a *app, steps []service.Command) error {
	for _, s := range steps {
		m.Commands = append(m.Commands, s.String())
		if m.DryRun {
			continue
		}
		a.step("running " + s.String())
		if _, err := s.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c serviceCmd) restartOf(at *service.Installation) string {
	if c.System {
		return "systemctl restart " + at.Name
	}
	return "systemctl --user restart " + at.Name
}

// runsAlready reports whether launchd runs the unit as it is: telling it again would end
// the run. systemd knows that itself.
func (c serviceCmd) runsAlready(ctx context.Context, at *service.Installation, found service.Found) bool {
	if c.Manager != "launchd" || found != service.Current {
		return false
	}
	state, err := at.Ask(ctx)
	return err == nil && state.Active == "active"
}

// lingering says how a user's own services run while nobody is logged in, where they
// do not (systemd-logind(8)).
func (c serviceCmd) lingering(u *service.Unit) []string {
	if c.System || c.Manager != "systemd" {
		return nil
	}
	if _, err := os.Stat(filepath.Join("/var/lib/systemd/linger", u.User)); err == nil {
		return nil
	}
	return []string{"loginctl enable-linger   # it keeps running after you log out"}
}

func (m managed) text(p *page) {
	verb := map[string]string{"installed": "wrote", "uninstalled": "removed"}[m.Done]
	ran := "ran"
	switch {
	case !m.Changed && m.Done == "uninstalled":
		p.printf("there is no %s\n", m.Path)
		return
	case !m.Changed:
		verb = "as it was"
	case m.DryRun:
		verb = map[string]string{"installed": "would write", "uninstalled": "would remove"}[m.Done]
	}
	if m.DryRun {
		ran = "would run"
	}
	p.printf("%s %s\n", verb, m.Path)
	for _, c := range m.Commands {
		p.printf("%s %s\n", ran, c)
	}
	if m.DryRun && m.Unit != "" {
		p.printf("\n")
		p.document([]byte(m.Unit))
		p.printf("\n")
	}
	for i, do := range m.Do {
		if i == 0 {
			p.printf("\nNext:\n\n")
		}
		p.printf("    %s\n", do)
	}
}

// serviceState is how a service is.
type serviceState struct {
	Manager string        `json:"manager"`
	Name    string        `json:"name"`
	Path    string        `json:"path"`
	Found   service.Found `json:"found"`
	service.State
	Logs string `json:"logs"` // the command
}

func (c serviceCmd) look(ctx context.Context, a *app, at *service.Installation, found service.Found) (result, error) {
	res := serviceState{Manager: c.Manager, Name: at.Name, Path: at.Path, Found: found, Logs: at.Logs.String()}
	state, err := at.Ask(ctx)
	if failed, ok := errors.AsType[*service.CommandError](err); ok {
		a.warn(failed.Error())
	}
	res.State = state
	return res, nil
}

func (s serviceState) text(p *page) {
	p.printf("%s (%s)\n\n", s.Name, s.Manager)
	found := map[service.Found]string{
		service.Missing: "no: heartbeat service install", service.Current: "yes", service.Foreign: "another unit than heartbeat's",
		service.Other: "yes, and not as install would write it now: the binary, the file, PATH or the version differ; heartbeat service install",
	}[s.Found]
	known := func(state string) string {
		if state == "" {
			return unknown
		}
		return state
	}
	colour := p.yellow
	if s.Active == "active" {
		colour = p.green
	}
	for _, line := range [][3]string{
		{"installed", found + " (" + s.Path + ")", ""}, {"enabled", known(s.Enabled), ""}, {"active", known(s.Active), colour}, {"log", s.Logs, ""},
	} {
		p.coloured(p.dim, fmt.Sprintf("  %-10s", line[0]))
		lines := []string{line[1]}
		if line[0] == "installed" && p.columns > 0 { // the others are a word, or a command to copy
			lines = wrap(line[1], p.prose()-12)
		}
		for i, text := range lines {
			p.printf("%*s", min(i, 1)*12, "")
			p.coloured(line[2], text)
			p.printf("\n")
		}
	}
}
