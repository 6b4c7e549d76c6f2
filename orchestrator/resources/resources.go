// Package resources is what each of an agent's sessions may take of the
// machine, as declared, and whether that can be kept. ptyrun keeps it.
package resources

import (
	"errors"
	"os"
	"strings"

	"heartbeat/config"
	"heartbeat/ptyrun"
)

// Of are the limits of each of an agent's sessions.
func Of(a *config.Agent) ptyrun.Limits {
	r := a.Resources
	return ptyrun.Limits{Memory: r.Memory, Processes: r.Processes, CPU: r.CPU, Required: r.Required}
}

// Lack is why agents cannot have the limits that are declared for them.
type Lack struct {
	Why    *ptyrun.NoLimitsError
	Agents []string
	// Required are those of them whose sessions do not start without.
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

// MakeRoom prepares this process for sessions with limits, where an agent has
// any, and says what cannot be kept.
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

// Lacking says what cannot be kept by a run: the process pid, or one that would
// be started as this one was, for 0. It changes nothing.
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
