package orchestrator

import (
	"heartbeat/config"
	"heartbeat/hook"
)

// ConfigDir is where the client of an agent's sessions keeps its conversations.
func ConfigDir(a *config.Agent) (string, error) {
	env, err := environment(a)
	if err != nil {
		return "", err
	}
	return hook.ConfigDir(env), nil
}
