package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"heartbeat/hook/owned"
	"heartbeat/hook/settings"
	"heartbeat/sources"
)

// warn reports something that is allowed but probably a mistake.
func (l *loader) warn(p place, message, hint string) {
	l.note(&l.warnings, p, message, hint)
}

// suspicious warns about what is allowed but probably a mistake.
func (l *loader) suspicious() {
	for _, d := range l.agents {
		l.unreadable(d)
	}
	for _, s := range l.claims.secrets {
		l.exposed(s)
	}
	l.unusable()
}

// unusable warns about secrets of webhooks and addresses that cannot be used now, each
// once: what asks for them is refused.
func (l *loader) unusable() {
	seen := map[string]bool{}
	for _, s := range l.claims.agreed {
		if seen[s.File] {
			continue
		}
		seen[s.File] = true
		if _, err := ReadSecret(s.File); err != nil {
			l.warn(s.where, err.Error(), SecretCure(s.File, err))
		}
	}
}

// SecretCure is what to do about a secret-file that ReadSecret refuses with err. One that
// others can read is not replaced: the sender has its secret.
func SecretCure(file string, err error) string {
	quoted := settings.Quote(file)
	if e, ok := errors.AsType[*owned.Error](err); ok {
		return cmp.Or(e.Fix, "chmod 600") + " " + quoted + ", or make another secret if somebody may have read it"
	}
	if errors.Is(err, fs.ErrPermission) {
		return "let this user read it, or the group that this user is in"
	}
	return "(umask 077; openssl rand -hex 32 > " + quoted + "), and give the sender the same secret"
}

// missedAll warns about missed: all when overlap: skip makes it useless.
func (l *loader) missedAll(t table, c *CronTrigger) {
	if c.Missed == sources.MissedAll && c.Overlap == OverlapSkip {
		l.warn(t["missed"], "with overlap: skip, the second missed fire finds the first one still queued and is dropped", "add overlap: queue")
	}
}

// heldFirst warns about an agent that would be held before max-attempts sets a
// prompt aside that ends each of its sessions.
func (l *loader) heldFirst(a *Agent, t table) {
	if a.MaxRestarts < a.MaxAttempts {
		l.warn(t["max-restarts"], fmt.Sprintf("a prompt that ends every session holds the agent at failure %d, before max-attempts (%d) sets the prompt aside",
			a.MaxRestarts+1, a.MaxAttempts), fmt.Sprintf("write at least %d, or a smaller max-attempts", a.MaxAttempts))
	}
}

// unreadable warns about an env-file that cannot be read: no session would start
// now. The file may be made later, or the fleet may be meant for another machine.
func (l *loader) unreadable(d declared) {
	if d.EnvFile == "" {
		return
	}
	err, known := l.disk.envFiles[d.EnvFile]
	if !known {
		_, err = readEnvFile(d.EnvFile)
		l.disk.envFiles[d.EnvFile] = err
	}
	if err != nil {
		l.warn(d.envFile, err.Error(), "no session starts without its variables")
	}
}
