package workspace

import (
	"cmp"

	"heartbeat/config"
	"heartbeat/orchestrator/launch"
)

// Preparer returns what a Scheduler calls before each session: it applies what
// has drifted, and says what the session has to know. self is the running
// binary. Where it is known that no session can do its work, the error is a
// *preflight.BlockedError.
func Preparer(stateDir, self string) (func(*config.Agent) (launch.Prepared, error), error) {
	h, err := FindHook(self, stateDir)
	if err != nil {
		return nil, err
	}
	k := &keeper{stateDir: stateDir, hook: h}
	return func(a *config.Agent) (launch.Prepared, error) {
		h, err := k.current()
		if err != nil {
			return launch.Prepared{}, err
		}
		p, err := Apply(a, stateDir, h)
		if err != nil {
			_, blocked := Blocked(a, stateDir, h)
			return launch.Prepared{}, cmp.Or(blocked, err)
		}
		answers, err := Blocked(a, stateDir, h)
		if err != nil {
			return launch.Prepared{}, err
		}
		return launch.Prepared{
			Answers: answers, SettingsFile: p.SettingsFile, Flags: p.client().Added(), StopHooks: p.Others.Present(), Changed: p.Changes(),
		}, nil
	}, nil
}
