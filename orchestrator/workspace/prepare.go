package workspace

import (
	"heartbeat/config"
	"heartbeat/orchestrator"
)

// Preparer returns what a Scheduler calls before each session: it applies what
// has drifted, and says what the session has to know. self is the running
// binary. A directory in which no hook can run is an error: the session would
// do one turn and stand still.
func Preparer(stateDir, self string) (func(*config.Agent) (orchestrator.Prepared, error), error) {
	h, err := FindHook(self, stateDir)
	if err != nil {
		return nil, err
	}
	return func(a *config.Agent) (orchestrator.Prepared, error) {
		p, err := Apply(a, stateDir, h)
		if err != nil {
			return orchestrator.Prepared{}, err
		}
		if err := p.Disabled(); err != nil {
			return orchestrator.Prepared{}, err
		}
		return orchestrator.Prepared{
			SettingsFile: p.SettingsFile, ForeignStopHooks: p.ForeignStopHooks, Changed: p.Changes(),
		}, nil
	}, nil
}
