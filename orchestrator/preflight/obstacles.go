package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/settings"
)

// Obstacle is something that prevents sessions from working, for certain: the
// client does not start, opens a dialog that nobody answers, or runs without our
// hooks, so that the model works and nobody knows.
type Obstacle struct {
	// Code names the kind, as in doctor's findings.
	Code Code
	// Seen is what was found, Why what follows from it, Fix what to change.
	Seen, Why, Fix string
}

// Code names a kind of Obstacle.
type Code string

// The codes of what prevents hooks from working, and of what prevents the client
// from starting.
const (
	HooksDisabled Code = "hooks-disabled"
	SettingsEnv   Code = "settings-env"
	BlockCap      Code = "block-cap"
	NoSettings    Code = "settings-missing"

	EnvFile         Code = "env-file"
	Exposed         Code = "exposed"
	ClientMissing   Code = "client-missing"
	OwnFileBroken   Code = "client-config-broken"
	NoOnboarding    Code = "no-onboarding"
	NotTrusted      Code = "not-trusted"
	NotLoggedIn     Code = "not-logged-in"
	RootBypass      Code = "root-bypass"
	BypassDialog    Code = "bypass-dialog"
	KeyNotApproved  Code = "key-not-approved"
	ServersOpen     Code = "mcp-dialog"
	ImportsOpen     Code = "import-dialog"
	SettingsBroken  Code = "settings-broken"
	SettingsRefused Code = "settings-refused"

	// PromptFile is of a prompt that no session could be given. Only who is about to start
	// one finds it: it takes a file to be written.
	PromptFile Code = "prompt-file"
)

const silent = "heartbeat would not see what its sessions do, and could not give them the next prompt"

// Obstacles lists everything that is in the way, the clearest first: what prevents
// the client from starting, then what prevents our hooks from working. all are the
// settings that the client reads.
func (c Client) Obstacles(all []Settings) []Obstacle {
	return slices.Concat(c.unstartable(), c.HookObstacles(all), c.dialogs(all), refusals(all))
}

// HookObstacles lists what prevents our hooks from being called, or from working,
// while the client itself runs.
func (c Client) HookObstacles(all []Settings) []Obstacle {
	found := c.flagged(c.flags())
	found = append(found, switched(all)...)
	found = append(found, c.simple(all)...)
	found = append(found, overridden(all)...)
	return append(found, unreadable(all)...)
}

// OfFile lists what of it the fleet's file alone decides. c is that of an empty
// environment.
func (c Client) OfFile() []Obstacle { return append(c.flagged(c.flags()), c.simple(nil)...) }

// flagged are flags of the command.
func (c Client) flagged(f flags) []Obstacle {
	var found []Obstacle
	say := func(seen, fix string) {
		found = append(found, Obstacle{HooksDisabled, seen, silent, fix})
	}
	if f.off != "" {
		say("command: has "+f.off+", which turns all hooks off", "remove "+f.off+" from command:")
	}
	if c.Target.Rendered() {
		return found
	}
	kind := Project
	if c.Target == config.SettingsLocal {
		kind = Local
	}
	switch {
	case f.restricted:
		say("command: has --restricted, with which the client reads no settings of the workspace", "set `settings: flag`, or remove it from command:")
	case !f.reads(kind):
		say(fmt.Sprintf("command: has --setting-sources without %s, where our hooks stand", kind),
			fmt.Sprintf("add %s to it, or set `settings: flag`", kind))
	}
	return found
}

// switched returns settings that turn hooks off.
func switched(all []Settings) []Obstacle {
	var found []Obstacle
	if s, on := decided(all, func(r *settings.Report) *bool { return r.DisableAllHooks }); on {
		fix := "remove disableAllHooks from " + s.Name
		if s.Kind == Managed {
			fix = askAdministrator
		}
		found = append(found, Obstacle{HooksDisabled, s.Name + " says disableAllHooks", silent, fix})
	}
	managed := slices.DeleteFunc(slices.Clone(all), func(s Settings) bool { return s.Kind != Managed })
	if s, on := decided(managed, func(r *settings.Report) *bool { return r.ManagedHooksOnly }); on {
		found = append(found, Obstacle{HooksDisabled, s.Name + " says allowManagedHooksOnly", silent, askAdministrator})
	}
	if s, on := decided(managed, func(r *settings.Report) *bool { return r.PluginsOnly }); on {
		found = append(found, Obstacle{HooksDisabled, s.Name + " says strictPluginOnlyCustomization for hooks", silent, askAdministrator})
	}
	return found
}

const askAdministrator = "ask who administers this machine to allow them"

// decided returns the settings that decide about a switch, and what they say.
func decided(all []Settings, read func(*settings.Report) *bool) (s Settings, on bool) {
	for _, s := range slices.Backward(all) {
		if s.Report == nil {
			continue
		}
		if said := read(s.Report); said != nil {
			return s, *said
		}
	}
	return Settings{}, false
}

// simple returns variables with which the client runs without hooks. Settings of
// the workspace cannot set them.
func (c Client) simple(all []Settings) []Obstacle {
	var found []Obstacle
	for _, name := range client.Claude.Variables.HooksOff {
		value, where, fix := c.Env[name], "the environment", "unset it, or set it to 0 in env:"
		for _, s := range all {
			if v, ok := variable(s, name); ok && s.Kind != Project && s.Kind != Local {
				value, where, fix = v, s.Name, fmt.Sprintf("remove %s from env in %s", name, s.Name)
			}
		}
		if client.On(value) {
			found = append(found, Obstacle{HooksDisabled, fmt.Sprintf("%s sets %s=%s", where, name, value), silent, fix})
		}
	}
	return found
}

func variable(s Settings, name string) (string, bool) {
	if s.Report == nil {
		return "", false
	}
	v, ok := s.Report.Env[name]
	return v, ok
}

// Capped reports whether a value of client.Variables.Cap leaves a limit in place (8
// if it is not set or not a number, none at 0 or below).
func Capped(value string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	return err != nil || n > 0
}

// overridden returns variables of settings that replace those that a session is
// given.
func overridden(all []Settings) []Obstacle {
	var found []Obstacle
	for _, name := range hook.Variables() {
		for _, s := range all {
			if _, ok := variable(s, name); ok {
				found = append(found, Obstacle{
					SettingsEnv, fmt.Sprintf("%s sets %s", s.Name, name),
					"it overrides the session's own: its hooks then do not recognise the session, and hand nothing over",
					fmt.Sprintf("remove %s from env in %s", name, s.Name),
				})
			}
		}
	}
	capVariable := client.Claude.Variables.Cap
	for _, s := range slices.Backward(all) {
		value, ok := variable(s, capVariable)
		if ok && Capped(value) {
			found = append(found, Obstacle{
				BlockCap, fmt.Sprintf("%s sets %s=%q", s.Name, capVariable, value),
				"it overrides what we set: the client ends the turn after that many prompts in a row (8 if it is not a number)",
				"remove " + capVariable + " from " + s.Name,
			})
		}
		if ok {
			break
		}
	}
	return found
}

// unreadable returns settings that the command names and that do not exist.
func unreadable(all []Settings) []Obstacle {
	for _, s := range all {
		if s.Kind == Flag && s.Err != nil {
			return []Obstacle{{
				NoSettings, s.Name + ": " + s.Err.Error(), "the client does not start with it", "correct --settings in command:",
			}}
		}
	}
	return nil
}
