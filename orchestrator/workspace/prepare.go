package workspace

import (
	"cmp"
	"fmt"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/launch"
)

// Preparer returns what a Scheduler calls before each session: it applies what has
// drifted, and says what the session has to know. self is the running binary. If it
// is known that no session can work, the error is a *preflight.BlockedError.
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
		passed, err := p.passed()
		if err != nil {
			return launch.Prepared{}, err
		}
		return launch.Prepared{
			Answers: answers, Settings: passed, Flags: p.client().Added(), StopHooks: p.Others.Present(), Changed: p.Changes(),
		}, nil
	}, nil
}

// passed is what a session's client is given by --settings: a status line of ours,
// which tells what the session costs, in what the client would get otherwise. The
// client takes only the last --settings, so what the agent's command passes is in
// it. It is nil where the client cannot read that: it says so itself.
func (p *Plan) passed() ([]byte, error) {
	base := p.rendered
	if base == nil {
		theirs, _ := p.client().Passed()
		if theirs.Err != nil {
			return nil, nil
		}
		base = theirs.Data
	}
	data, err := settings.WithStatusLine(base, settings.StatusLineCommand(p.hook.Command, p.StatusLine))
	if err != nil {
		return nil, fmt.Errorf("cannot render the settings of agent %q: %w", p.Agent.Name, err)
	}
	return data, nil
}
