package orchestrator

import (
	"path/filepath"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

// keepLogs is how many sessions' terminal logs an agent keeps.
const keepLogs = 20

// spec says what an agent's next session is.
func (s *Scheduler) spec(a *agent, c *config.Agent, p Prepared, env []string, interrupted *inbox.InFlight) (session.Spec, error) {
	command := c.Argv()
	if c.Self {
		command = append([]string{Self()}, c.Command[1:]...)
	}
	socket := ""
	if s.opt.RuntimeDir != "" {
		socket = filepath.Join(s.opt.RuntimeDir, session.SocketName(c.Name))
	}
	policy := c.Policy()
	if err := s.meet(a, &policy, p.StopHooks); err != nil {
		return session.Spec{}, err
	}
	if s.opt.Once {
		policy.Mode = hook.Drain
	}
	id := newUUID()
	resume, goesOn, err := s.converse(a, c, interrupted, id)
	if err != nil {
		return session.Spec{}, err
	}
	goOn := ""
	if goesOn {
		goOn = interrupted.DeliveryID
	}
	return session.Spec{
		Agent: c.Name, Session: id, Resume: resume, GoOn: goOn, Token: newToken(), Dir: c.Dir, Home: c.Home, Inbox: c.Inbox,
		Command: command, Env: env, Policy: policy, KickoffText: c.KickoffText,
		PermissionMode: c.Permissions.Mode, SettingsFile: p.SettingsFile, Flags: p.Flags,
		EntryTimeout: c.Timeout, SessionTimeout: c.SessionTimeout, StartTimeout: c.StartTimeout,
		IdleGrace: c.IdleGrace, BackgroundTimeout: c.BackgroundTimeout, StallTimeout: c.StallTimeout, Grace: c.Grace,
		KeepLogs: keepLogs, StateDir: s.opt.StateDir, Socket: socket,
	}, nil
}
