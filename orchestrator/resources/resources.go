// Package resources determines what each of an agent's sessions may use of the
// machine, as declared, and whether that can be enforced. ptyrun enforces it.
package resources

import (
	"errors"
	"os"
	"strings"

	"heartbeat/config"
	"heartbeat/ptyrun"
)

// Of returns the limits of each of an agent's sessions.
func Of(a *config.Agent) ptyrun.Limits {
	r := a.Resources
	return ptyrun.Limits{Memory: r.Memory, Processes: r.Processes, CPU: r.CPU, Required: r.Required}
}

// Lack is why agents cannot have the limits that are declared for them.
type Lack struct {
	Why    *ptyrun.NoLimitsError
	Agents []string
	// Required are those of them whose sessions do not start without the limits.
	Required []string
}

func (l Lack) String() string {
	text := l.Why.Error()
	if l.Agents != nil {
		text += "; sessions run without: " + few(l.Agents)
	}
	if l.Required != nil {
		text += "; none is started, as required: true says: " + few(l.Required)
	}
	return text
}

// few lists up to five names.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}

// MakeRoom prepares this process for sessions with limits, if an agent has any, and
// says what cannot be enforced.
func MakeRoom(agents []*config.Agent) []Lack {
	var made error
	tried := false
	return lacks(agents, func(l ptyrun.Limits) error {
		if !tried {
			tried, made = true, ptyrun.MakeRoom()
		}
		if made != nil {
			return made
		}
		return ptyrun.CanLimit(os.Getpid(), l)
	})
}

// Lacking says what a run cannot enforce: the process pid, or for 0 one that would
// be started like this process. It changes nothing.
func Lacking(agents []*config.Agent, pid int) []Lack {
	return lacks(agents, func(l ptyrun.Limits) error { return ptyrun.CanLimit(pid, l) })
}

func lacks(agents []*config.Agent, check func(ptyrun.Limits) error) []Lack {
	var all []Lack
	index := map[string]int{}
	for _, a := range agents {
		l := Of(a)
		if l.None() {
			continue
		}
		why, ok := errors.AsType[*ptyrun.NoLimitsError](check(l))
		if !ok {
			continue
		}
		at, known := index[why.Why]
		if !known {
			at = len(all)
			index[why.Why] = at
			all = append(all, Lack{Why: why})
		}
		if l.Required {
			all[at].Required = append(all[at].Required, a.Name)
		} else {
			all[at].Agents = append(all[at].Agents, a.Name)
		}
	}
	return all
}
