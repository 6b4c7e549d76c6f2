package memory

import (
	"errors"
	"fmt"

	"heartbeat/config"
	"heartbeat/hook/flock"
)

// ErrRuns means that a run has an agent: ask that run.
var ErrRuns = errors.New("it is locked by a run, which does not answer")

// NotRun returns nil if no run has one of the agents, of whatever version of heartbeat and in
// whatever state directory; else the error matches ErrRuns.
func NotRun(agents []*config.Agent) error {
	for _, a := range agents {
		if flock.Held(a.Dir) {
			return fmt.Errorf("the directory of agent %q: %w", a.Name, ErrRuns)
		}
	}
	return nil
}
