package launch

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
)

// conversation is the client's conversation that an agent's last sessions had:
// conversations/KEY.json in the state directory. context: resume continues it, and
// so does an entry whose turn the service has ended. The ids are ours; the agent's
// own files are not consulted.
type conversation struct {
	ID  string `json:"id"`
	Dir string `json:"dir"` // the client keeps conversations by directory
	// Sessions are the last ones that had it: the one that an entry in flight
	// names, and the one that was started to continue it.
	Sessions []string `json:"sessions,omitempty"`
}

func conversationPath(stateDir, key string) string {
	return filepath.Join(stateDir, "conversations", key+".json")
}

// converse returns the id of the conversation that a new session continues, or ""
// if it begins one, under the id of the session; and whether the interrupted entry
// continues in it. This is saved before the session starts, so that it is found
// again after the scheduler is killed.
func (t *Ticket) converse(newSession string, now time.Time) (resume string, goesOn bool, err error) {
	var kept conversation
	path, c := conversationPath(t.StateDir, t.Key), t.Agent
	if t.Apart != "" {
		return t.Apart, t.Interrupted != nil, nil
	}
	err = state.Load(path, &kept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && (c.Context == hook.ContextResume || !errors.Is(err, state.ErrDamaged)) {
		return "", false, err
	}
	next := conversation{Dir: c.Dir, Sessions: []string{newSession}}
	if kept.ID != "" && kept.Dir == c.Dir {
		goesOn = kept.had(t.Interrupted)
		if goesOn || kept.had(t.Unproven) || c.Context == hook.ContextResume || now.Before(t.GoesOn) {
			resume = kept.ID
		}
	}
	switch {
	case goesOn:
		next.Sessions = []string{t.Interrupted.Session, newSession}
	case resume != "" && kept.had(t.Unproven):
		next.Sessions = []string{t.Unproven.Session, newSession}
	}
	next.ID = cmp.Or(resume, newSession)
	return resume, goesOn, state.Save(path, next)
}

// Of returns the conversation of an agent's last sessions, if an entry in flight was
// worked on in it, or "".
func Of(stateDir, key string, f *inbox.InFlight) string {
	var kept conversation
	if err := state.Load(conversationPath(stateDir, key), &kept); err != nil || !kept.had(f) {
		return ""
	}
	return kept.ID
}

// had reports whether an entry was worked on in the conversation.
func (c *conversation) had(f *inbox.InFlight) bool {
	return f != nil && slices.Contains(c.Sessions, f.Session)
}

// noConversation is what the client says to --resume with an id that it does not
// know, or whose file it cannot read (measured in 2.1.329; it exits with 1).
var noConversation = []string{"No conversation found", "Failed to resume session"}

// NoConversation reports whether a session ended because the client no longer has
// the conversation to continue: it was deleted, or cannot be read.
func NoConversation(spec session.Spec, o session.Outcome) bool {
	return spec.Resume != "" && o.Why == hook.EndExited && o.ExitCode == 1 &&
		slices.ContainsFunc(noConversation, func(words string) bool { return strings.Contains(o.Screen, words) })
}

// Forget forgets the conversation that a session of an agent has had, if that is the one
// of its queue: what was set aside goes on in another one.
func Forget(stateDir, key string, had session.Spec) error {
	var kept conversation
	if err := state.Load(conversationPath(stateDir, key), &kept); err == nil && kept.ID != cmp.Or(had.Resume, had.Session) {
		return nil
	}
	if err := os.Remove(conversationPath(stateDir, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
