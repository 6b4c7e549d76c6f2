package orchestrator

import (
	"os"

	"heartbeat/config"
	"heartbeat/ptyrun"
)

// environment is what an agent's processes get: ours without the marks of a
// session, by the agent's rules. An error tells no value.
func environment(a *config.Agent) ([]string, error) {
	env, err := a.Environ(ptyrun.CleanEnv(os.Environ()))
	if err != nil {
		return nil, err
	}
	return env, nil
}
