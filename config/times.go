package config

import (
	"fmt"
	"time"

	"heartbeat/hook"
)

// contradicts is a pair of times that are each fine, and of which one takes away what the
// other is for.
type contradicts struct {
	// short has to be longer than long, which are keys of an agent.
	short, long string
	times       func(a *Agent) (short, long time.Duration)
	// needs is the key that has to be written down: with its default nobody has meant
	// anything by it; "": either may be the default.
	needs string
	then  string // what happens otherwise
}

// contradictions are all such pairs. Not among them: a session-timeout below timeout (a
// session ends between prompts), shutdown-grace and end-grace (one begins when the other is
// over), hold and check-timeout (a session need not wait for its check), every and timeout
// of a poll (the next one is later).
var contradictions = []contradicts{
	{"timeout", "idle-interval", func(a *Agent) (time.Duration, time.Duration) { return a.Timeout, a.IdleInterval }, "", "a prompt gets less time than a session spends waiting for one"},
	{"session-timeout", "idle-interval", func(a *Agent) (time.Duration, time.Duration) { return a.SessionTimeout, a.IdleInterval }, "", "a session ends before it has waited that long, so on-idle never applies"},
	{"session-timeout", "start-timeout", func(a *Agent) (time.Duration, time.Duration) { return a.SessionTimeout, a.StartTimeout }, "", "a session may be over before it has started"},
	{"timeout", "stall-timeout", func(a *Agent) (time.Duration, time.Duration) { return a.Timeout, a.StallTimeout }, "stall-timeout", "a prompt is over before it counts as stalled, so stall-timeout never applies"},
	{"timeout", "tool-timeout", func(a *Agent) (time.Duration, time.Duration) { return a.Timeout, a.ToolTimeout }, "tool-timeout", "a prompt is over before its tool is, so tool-timeout never applies"},
	{"timeout", "background-timeout", func(a *Agent) (time.Duration, time.Duration) { return a.Timeout, a.BackgroundTimeout }, "background-timeout", "a prompt is over before its background tasks are, so background-timeout never applies"},
}

// contrary warns about times of an agent that contradict each other.
func (l *loader) contrary(a *Agent, t table) {
	if a.Name == "" {
		return // the defaults themselves: an agent may say otherwise
	}
	for _, c := range contradictions {
		short, long := c.times(a)
		l.ifContrary(a, t, c, short, long)
	}
	if len(a.ToolTimeouts) == 0 {
		return
	}
	for name, p := range l.entries(t["tool-timeouts"]) {
		if limit := a.ToolTimeouts[name]; a.Timeout > 0 && a.Timeout <= limit {
			l.warn(p, fmt.Sprintf("timeout (%s) is not longer than this (%s): a prompt is over before the tool is, so this never applies", hook.Lasting(a.Timeout), hook.Lasting(limit)), "write a shorter time, or a longer timeout")
		}
	}
}

func (l *loader) ifContrary(a *Agent, t table, c contradicts, short, long time.Duration) {
	p, shortened := t[c.short]
	other, lengthened := t[c.long]
	_, needed := t[c.needs]
	switch {
	case short <= 0 || long <= 0 || short > long, !shortened && !lengthened, c.needs != "" && !needed:
		return
	case c.long == "idle-interval" && a.Mode != hook.Persist && !lengthened: // no session waits
		return
	case !shortened:
		p = other
	}
	l.warn(p, fmt.Sprintf("%s (%s) is not longer than %s (%s): %s", c.short, hook.Lasting(short), c.long, hook.Lasting(long), c.then),
		fmt.Sprintf("write a longer %s, or a shorter %s", c.short, c.long))
}
