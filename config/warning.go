package config

import (
	"fmt"

	"heartbeat/sources"
)

// warn notes something that is allowed and most likely not meant.
func (l *loader) warn(p place, message, hint string) {
	l.note(&l.warnings, p, message, hint)
}

// suspicious looks at agents for what is allowed and most likely not meant.
func (l *loader) suspicious() {
	for _, d := range l.agents {
		l.unreadable(d)
	}
}

// missedAll warns of a rule that another one makes void.
func (l *loader) missedAll(t table, c *CronTrigger) {
	if c.Missed == sources.MissedAll && c.Overlap == OverlapSkip {
		l.warn(t["missed"], "with overlap: skip the second missed fire finds the first one queued and is dropped", "write overlap: queue beside it")
	}
}

// heldFirst warns of an agent that is held before a prompt that ends each of
// its sessions is put aside.
func (l *loader) heldFirst(a *Agent, t table) {
	if a.MaxRestarts < a.MaxAttempts {
		l.warn(t["max-restarts"], fmt.Sprintf("a prompt that ends each session holds the agent at failure %d, before max-attempts (%d) puts it aside",
			a.MaxRestarts+1, a.MaxAttempts), fmt.Sprintf("write at least %d, or a smaller max-attempts", a.MaxAttempts))
	}
}

// unreadable warns of an env-file without which no session would start now. It
// may be made later, or the fleet be meant for another machine.
func (l *loader) unreadable(d declared) {
	if d.EnvFile == "" {
		return
	}
	err, known := l.envFiles[d.EnvFile]
	if !known {
		_, err = ReadEnvFile(d.EnvFile)
		l.envFiles[d.EnvFile] = err
	}
	if err != nil {
		l.warn(d.envFile, err.Error(), "no session starts without its variables")
	}
}
