package session

import (
	"cmp"
	"slices"
	"strings"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/hook/client"
)

// laterText starts a session whose first entry does not fit into argv; the entry
// comes with the first Stop, one turn later.
const laterText = "Your tasks come one after another from a queue. Answer this message with the single word: ready"

// argv is the client's command line.
func (s *Spec) argv(prompt string) []string {
	argv, flag := slices.Clone(s.Command), client.Claude.Flags
	if s.Resume != "" {
		argv = append(argv, flag.Resume, s.Resume)
	} else {
		argv = append(argv, flag.Session, s.Session)
	}
	if s.PermissionMode != "" {
		argv = append(argv, flag.Mode, s.PermissionMode)
	}
	if s.Settings != nil {
		argv = append(argv, flag.Settings, s.settingsFile())
	}
	argv = append(argv, s.Flags...)
	return append(argv, "--", prompt)
}

// environ returns the client's environment: the spec's, defaults that prevent a
// session from hanging silently if the caller set nothing, and our own variables.
func (s *Spec) environ() []string {
	env, known := slices.Clone(s.Env), client.Claude.Variables
	defaults := known.Defaults
	if get := client.In(env); get(known.Key) != "" || get(known.Token) != "" {
		defaults = slices.Concat(defaults, known.Keyed)
	}
	if !s.AutoUpdate {
		defaults = append(slices.Clip(defaults), known.Still)
	}
	for _, kv := range defaults {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, kv)
		}
	}
	env = append(env, known.Session...)
	return append(env,
		ask.EnvSession+"="+s.Token,
		ask.EnvSocket+"="+hooksSocket(s.StateDir, s.Session),
		ask.EnvHome+"="+s.Home,
		hook.EnvAgent+"="+s.Agent,
	)
}

// terms returns what the session is started for.
func (s *Spec) terms() hook.Terms {
	return hook.Terms{
		Agent: s.Agent, Session: s.Session, Conversation: cmp.Or(s.Resume, s.Session), Inbox: s.Inbox, Policy: s.Policy,
	}
}
