package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/hook"
)

// Until says when a prompt is done: its check passes. It is plain data, so that two
// are the same where they are deeply equal, also as JSON.
type Until struct {
	Check []string `json:"check"`
	// Program is the absolute path of Check[0] where that has a slash.
	Program      string        `json:"program,omitempty"`
	CheckTimeout time.Duration `json:"check_timeout"`
	// Approve are the names by which a person, or a rule, has to say yes after that.
	Approve []string `json:"approve,omitempty"`
	// Aside says that what waits for that yes does not keep the queue waiting.
	Aside bool `json:"aside,omitempty"`
	// Promise is what the agent has to claim beside that, or "".
	Promise string `json:"promise,omitempty"`
	// MaxIterations and MaxTime bound how often it is handed over, and how long the
	// agent may work on it; 0: not.
	MaxIterations int               `json:"max_iterations"`
	MaxTime       time.Duration     `json:"max_time"`
	Env           map[string]string `json:"env,omitempty"`
	// Hold is how long a session waits for a check before it is released.
	Hold time.Duration `json:"hold"`
}

// Defaults of until.
const (
	DefaultCheckTimeout  = 10 * time.Minute
	DefaultMaxIterations = 10
	DefaultMaxTime       = 2 * time.Hour
	DefaultHold          = 15 * time.Minute
)

// mostCheck bounds check-timeout: a Stop hook that waits for it was measured with
// waits of hours, not of days.
const mostCheck = day

// NewUntil returns one with a check and the defaults.
func NewUntil(check ...string) *Until {
	return &Until{
		Check: check, CheckTimeout: DefaultCheckTimeout, MaxIterations: DefaultMaxIterations, MaxTime: DefaultMaxTime, Hold: DefaultHold,
	}
}

// Argv is the check with its program's path.
func (u *Until) Argv() []string { return located(u.Program, u.Check) }

// Environ are the variables of Env as NAME=VALUE, in order.
func (u *Until) Environ() []string {
	env := make([]string, 0, len(u.Env))
	for name, value := range u.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Promises reports whether a last message makes the claim, as <promise>…</promise>.
// White space makes no difference.
func (u *Until) Promises(reply string) bool {
	if u.Promise == "" {
		return true
	}
	want := strings.Join(strings.Fields(u.Promise), " ")
	for _, part := range strings.Split(reply, "<promise>")[1:] {
		if claim, _, ended := strings.Cut(part, "</promise>"); ended && strings.Join(strings.Fields(claim), " ") == want {
			return true
		}
	}
	return false
}

// LongestCheck is how long a session of the agent waits for a verdict: the longest
// check-timeout of the agent and its triggers, and what may be waited before the next
// iteration; 0: it has no checks.
func (a *Agent) LongestCheck() time.Duration {
	longest := time.Duration(0)
	if a.Until != nil {
		longest = a.Until.CheckTimeout
	}
	for i := range a.Triggers {
		if u := a.Triggers[i].Until; u != nil {
			longest = max(longest, u.CheckTimeout)
		}
	}
	if longest > 0 {
		longest += hook.LongestPause
	}
	return longest
}

// HoldsFor is how long a session of the agent is kept for a check: the longest hold of
// the agent and its triggers.
func (a *Agent) HoldsFor() time.Duration {
	longest := DefaultHold // of what is sent with an until of its own
	if a.Until != nil {
		longest = a.Until.Hold
	}
	for i := range a.Triggers {
		if u := a.Triggers[i].Until; u != nil {
			longest = max(longest, u.Hold)
		}
	}
	return longest
}

// until reads the key until.
func (l *loader) until(t table) *Until {
	p, ok := t["until"]
	if !ok || empty(p.here().node) {
		return nil
	}
	fields, ok := l.table(p, untilKeys, func(key string) string {
		switch key {
		case "timeout":
			return "did you mean check-timeout?"
		case "command":
			return "did you mean check?"
		}
		return ""
	})
	if !ok {
		return nil
	}
	u := NewUntil()
	if where, has := fields["check"]; has {
		u.Check = l.command(where, "[make, test]")
		u.Program = l.runs(where, u.Check, false)
	} else {
		l.absence(p.lacking("check"), "write check: [COMMAND]; what an agent claims proves nothing")
	}
	u.CheckTimeout = l.duration(fields, "check-timeout", u.CheckTimeout, bounds{most: mostCheck})
	if where, has := fields["approve"]; has {
		u.Approve = l.approvers(where)
	}
	if u.Aside = l.boolean(fields, "aside"); u.Aside && len(u.Approve) == 0 {
		l.problem(fields["aside"], "needs approve", "write approve: [release] beside it, or leave aside out: it is for what waits for a person")
	}
	if where, has := fields["promise"]; has {
		u.Promise = l.claim(where)
	}
	u.MaxIterations = l.number(fields, "max-iterations", u.MaxIterations, 0)
	u.MaxTime = l.duration(fields, "max-time", u.MaxTime, bounds{none: true})
	u.Env = l.env(fields)
	u.Hold = l.duration(fields, "hold", u.Hold, bounds{most: day})
	return u
}

// approvers reads the names of what a person has to say yes to.
func (l *loader) approvers(p place) []string {
	names := l.texts(p, "for example [release]")
	for i, name := range names {
		switch {
		case !approverName(name):
			l.problem(p.here(), fmt.Sprintf("%q is not a name", cut(name)), "a name has letters, digits, dots, dashes and underscores, like release")
		case slices.Contains(names[:i], name):
			l.problem(p.here(), fmt.Sprintf("%q is named twice", name), "")
		}
	}
	return names
}

func approverName(name string) bool { return nameForm().MatchString(name) && len(name) <= mostName }

// ApproverNames reports whether approve may list these names.
func ApproverNames(names []string) bool {
	for i, name := range names {
		if !approverName(name) || slices.Contains(names[:i], name) {
			return false
		}
	}
	return true
}

// claim reads what an agent has to say.
func (l *loader) claim(p place) string {
	text, _ := l.filled(p)
	if strings.Contains(text, "<promise>") || strings.Contains(text, "</promise>") {
		l.problem(p, "has the tags", "write only what stands between <promise> and </promise>")
	}
	return text
}
