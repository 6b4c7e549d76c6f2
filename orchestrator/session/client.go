package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"heartbeat/hook"
)

// laterText starts a session whose first entry cannot go into argv; it comes
// with the first Stop, one turn more.
const laterText = "Your tasks come one after another from a queue. Answer this message with the single word: ready"

// argv is the client's command line.
func (s *Spec) argv(prompt string) []string {
	argv := slices.Clone(s.Command)
	if s.Resume != "" {
		argv = append(argv, "--resume", s.Resume)
	} else {
		argv = append(argv, "--session-id", s.Session)
	}
	if s.PermissionMode != "" {
		argv = append(argv, "--permission-mode", s.PermissionMode)
	}
	if s.SettingsFile != "" {
		argv = append(argv, "--settings", s.SettingsFile)
	}
	argv = append(argv, s.Flags...)
	return append(argv, "--", prompt)
}

// environ is the client's environment: the spec's, the defaults that keep a
// session from hanging silently where the caller set nothing, and what is ours.
func (s *Spec) environ() []string {
	env := slices.Clone(s.Env)
	for _, kv := range clientDefaults {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, kv)
		}
	}
	return append(env,
		// The client ends a turn after 8 consecutive blocks otherwise;
		// max-continuations stands in its place.
		"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
		// An entry's @path is text, not a file to read into the request.
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS=1",
		hook.EnvSession+"="+s.Token,
		hook.EnvHome+"="+s.Home,
		hook.EnvAgent+"="+s.Agent,
		hook.Terms{
			Agent: s.Agent, Session: s.Session, Conversation: cmp.Or(s.Resume, s.Session), Inbox: s.Inbox, Policy: s.Policy,
		}.Variable(),
	)
}

// clientDefaults bound a stream that hangs: 2.1.329 waits 300 s for its next byte
// and 361 s for an answer's first ones, and no hook is called meanwhile.
var clientDefaults = []string{
	"CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=" + strconv.Itoa(300_000),
	"API_TIMEOUT_MS=" + strconv.Itoa(600_000),
}
