package workspace

import (
	"cmp"
	"os"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/preflight"
)

// client returns how the agent's client is started.
func (p *Plan) client() preflight.Client {
	c := preflight.ClientOf(p.Agent, os.Environ())
	if p.hook != nil {
		c.Own = p.hook.Command
		c.Applied = append(p.written(), wanted(p.Agent, c.Own))
	}
	return c
}

// written returns what we have written into the settings files of the directory.
func (p *Plan) written() []settings.Want {
	var all []settings.Want
	for _, t := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal} {
		if r, err := p.applied(p.target(t)); err == nil && r != nil { // otherwise whoever uses it says so
			all = append(all, r.merged()...)
		}
	}
	return all
}

// inspect reads all settings that the client reads for the agent.
func (p *Plan) inspect() {
	c := p.client()
	all := c.Settings()
	p.Obstacles, p.Others, p.Foreign = c.HookObstacles(all), c.Others(all), c.Foreign(all)
	p.Timed, p.Timetable = c.Timed(), client.Claude.HasTimetable(p.Agent.Permissions.Allow)
	for _, s := range all {
		if s.Kind != preflight.Managed { // which ours does not replace
			p.StatusLine = cmp.Or(settings.StatusLine(s.Data), p.StatusLine)
		}
	}
}

// Blocked returns a *preflight.BlockedError if it is known that no session of an
// agent can work, as things are now; otherwise nil, and the answers to the client's
// questions that are in place (preflight.Client.Answers). Applying may end it. ours
// is how a command line of ours begins.
func Blocked(a *config.Agent, stateDir string, h *Hook, ours string) (answers string, err error) {
	c := (&Plan{Agent: a, stateDir: stateDir, hook: h}).client()
	c.Ours = ours
	all := c.Settings()
	if err := c.Blocked(c.Obstacles(all)); err != nil {
		return "", err
	}
	return c.Answers(all), nil
}
