package session

import (
	"path/filepath"
	"slices"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// The client reads its settings files at each event: a session whose file is reset
// to the version in a repository (git checkout .) continues without our hooks.

// maxSettings limits what is read of a settings file.
const maxSettings = 4 << 20

// hooked reports whether the settings file that should contain our Stop hook does;
// the agent can write it.
func (s *shim) hooked() bool {
	data, err := durable.Read(s.spec.HooksIn, maxSettings)
	if err != nil {
		return false
	}
	report, err := settings.Inspect(data)
	return err == nil && slices.ContainsFunc(report.Hooks, func(h settings.Hook) bool {
		return h.Event == client.Stop && h.Ours
	})
}

// unhooked says what became of our hooks if a session ended because nothing more
// was heard of it; "" if they are there, or never were.
func (s *shim) unhooked(why hook.End) string {
	switch why {
	case hook.EndUnattended, hook.EndTimeout, hook.EndStalled:
	default:
		return ""
	}
	if !s.wasHooked || s.hooked() {
		return ""
	}
	name := filepath.Base(s.spec.HooksIn)
	return "our hooks went from .claude/" + name + " in the session, as by `git checkout .` where a repository has that file; `settings: flag` keeps them out of it"
}
