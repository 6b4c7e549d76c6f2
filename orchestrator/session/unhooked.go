package session

import (
	"path/filepath"
	"slices"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// The client reads its settings files at each event: a session whose file is put
// back to what a repository has of it (git checkout .) goes on without our hooks.

// maxSettings bounds what is read of a settings file.
const maxSettings = 4 << 20

// hooked reports whether a Stop hook of ours stands in the settings file that has
// them, which the agent can write.
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

// unhooked says what became of our hooks where a session ended because nothing was
// heard of it any more; "" where they are there, or were not.
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
