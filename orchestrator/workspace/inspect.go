package workspace

import (
	"fmt"
	"os"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
)

// client is how the agent's client is started.
func (p *Plan) client() preflight.Client {
	c := preflight.ClientOf(p.Agent, os.Environ())
	if p.hook != nil {
		c.Own = p.hook.Command
		c.Applied = append(p.written(), wanted(p.Agent, c.Own))
	}
	return c
}

// written is what we have written into the settings files of the directory.
func (p *Plan) written() []settings.Want {
	var all []settings.Want
	for _, t := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal} {
		if r, err := p.applied(p.target(t)); err == nil && r != nil { // else it is told where it is used
			all = append(all, r.merged()...)
		}
	}
	return all
}

// inspect looks at all settings that the client reads for the agent.
func (p *Plan) inspect() {
	c := p.client()
	all := c.Settings()
	p.Obstacles, p.Others, p.Foreign = c.Obstacles(all), c.Others(all), c.Foreign(all)
}

// Blocked returns a *BlockedError when it is known that the client will not
// call our hooks, or that they cannot do their work; nil otherwise.
func (p *Plan) Blocked() error {
	if len(p.Obstacles) == 0 {
		return nil
	}
	return &BlockedError{Agent: p.Agent.Name, Obstacle: p.Obstacles[0]}
}

// BlockedError means that sessions would run without our hooks.
type BlockedError struct {
	Agent    string
	Obstacle preflight.Obstacle
}

// Error says what is in the way.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("cannot feed agent %q: %s", e.Agent, e.Obstacle.Seen)
}

// Hint says what to do.
func (e *BlockedError) Hint() string { return e.Obstacle.Fix }

// Unwrap says that only a person can help.
func (e *BlockedError) Unwrap() error { return launch.ErrNeedsPerson }
