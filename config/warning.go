package config

import (
	"fmt"
	"strings"

	"heartbeat/sources"
)

// warn notes something that is allowed and most likely not meant.
func (l *loader) warn(p place, message, hint string) {
	l.note(&l.warnings, p, message, hint)
}

// suspicious looks at agents for what is allowed and most likely not meant.
func (l *loader) suspicious() {
	for _, d := range l.agents {
		for _, src := range l.files {
			real := src.real
			if strings.HasPrefix(real, slashed(d.Dir)) {
				l.warn(d.dir, fmt.Sprintf("%s lies in the agent's own directory: the agent can change what is run", src.name),
					"move it out of "+d.Dir)
			}
		}
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

// writeRules warns of rules that the client accepts and never looks at: its
// Edit rules are for all tools that write files.
func (l *loader) writeRules(p place) {
	for i, element := range p.here().node.Content {
		rule := follow(element).Value
		if path, ok := strings.CutPrefix(rule, "Write("); ok && strings.HasSuffix(path, ")") {
			l.warn(p.below(i, element), fmt.Sprintf("Claude Code does not look at the path of %s", cut(rule)), "write Edit("+cut(path))
		}
	}
}
