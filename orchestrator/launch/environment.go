// Package launch prepares what an agent's session is started with: its environment,
// the client's conversation that it continues, and the Spec for its shim. It starts
// nothing.
package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/preflight"
	"heartbeat/ptyrun"
)

// Environment is what an agent's processes get: our environment without the marks
// of a session, changed by the agent's rules. The error is a
// *preflight.BlockedError.
func Environment(a *config.Agent) ([]string, error) {
	ofAgent := func(kv string) bool { return strings.HasPrefix(kv, envDir+"=") }
	ours := slices.DeleteFunc(ptyrun.CleanEnv(os.Environ()), ofAgent) // not another agent's
	env, err := preflight.Variables(a, ours)
	if err != nil || slices.ContainsFunc(env, ofAgent) {
		return env, err
	}
	return append(env, envDir+"="+a.Dir), nil
}

// Lacking returns the names of the variables by which the client of an agent's sessions logs
// in, or chooses its provider, with our environment, and which its sessions would not have
// with base: neither its env-file nor its env sets them.
func Lacking(a *config.Agent, base []string) ([]string, error) {
	here, err := Environment(a)
	if err != nil {
		return nil, err
	}
	there, err := preflight.Variables(a, base)
	if err != nil {
		return nil, err
	}
	known := client.Claude.Variables
	var names []string
	for _, kv := range here {
		name, value, _ := strings.Cut(kv, "=")
		if value != "" && known.Access(name) && client.In(there)(name) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// envDir is the agent's directory, by the name that scripts for heartbeat-rs know.
const envDir = "AGENT_DIR"

// ConfigDir returns where the client of an agent's sessions keeps its
// conversations.
func ConfigDir(a *config.Agent) (string, error) {
	if home := a.StandInHome(); home != "" {
		return filepath.Join(home, client.Claude.Settings.Folder), nil
	}
	env, err := Environment(a)
	if err != nil {
		return "", err
	}
	return client.Claude.ConfigDir(client.In(env)), nil
}
