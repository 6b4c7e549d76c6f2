package orchestrator

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
)

// conversation is the client's conversation that an agent's last sessions had:
// conversations/KEY.json in the state directory. It is what context: resume goes
// on with, and what an entry goes on in whose turn the service has ended. The
// ids are ours; what the agent's own files say is not asked.
type conversation struct {
	ID  string `json:"id"`
	Dir string `json:"dir"` // the client keeps conversations by directory
	// Sessions are the last ones that had it: the one that an entry in flight
	// names, and the one that was started to go on with it.
	Sessions []string `json:"sessions,omitempty"`
}

func (s *Scheduler) conversationPath(a *agent) string {
	return filepath.Join(s.opt.StateDir, "conversations", a.key+".json")
}

// converse returns the id of the conversation that a new session goes on with,
// or "" where one begins, under the id of the session; and whether the
// interrupted entry goes on in it. That is kept before the session starts, so
// that a scheduler that is killed finds it again.
func (s *Scheduler) converse(a *agent, c *config.Agent, interrupted *inbox.InFlight, newSession string) (resume string, goesOn bool, err error) {
	var kept conversation
	err = state.Load(s.conversationPath(a), &kept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && (c.Context == hook.ContextResume || !errors.Is(err, state.ErrDamaged)) {
		return "", false, err
	}
	next := conversation{Dir: c.Dir, Sessions: []string{newSession}}
	if kept.ID != "" && kept.Dir == c.Dir {
		goesOn = interrupted != nil && slices.Contains(kept.Sessions, interrupted.Session)
		if goesOn || c.Context == hook.ContextResume || s.goingOn(a) {
			resume = kept.ID
		}
	}
	if goesOn {
		next.Sessions = []string{interrupted.Session, newSession}
	}
	next.ID = cmp.Or(resume, newSession)
	return resume, goesOn, state.Save(s.conversationPath(a), next)
}

// interrupted returns the entry in flight of an agent without a session, where
// a failure that passes has ended its turn; or nil.
func interrupted(c *config.Agent) (*inbox.InFlight, error) {
	f, err := queue.InFlight(c)
	if err != nil || f == nil || !passing(f.Failure) {
		return nil, err
	}
	return f, nil
}

// noConversation is what the client says to --resume with an id that it does
// not know, or whose file it cannot read (measured in 2.1.329; it exits with 1).
var noConversation = []string{"No conversation found", "Failed to resume session"}

// conversed forgets a conversation that does not exist: its first session
// never began, or the client has deleted it or cannot read it. It reports the
// latter.
func (s *Scheduler) conversed(a *agent, spec session.Spec, o session.Outcome) (deleted bool) {
	gone := !o.Bound // it never began
	if spec.Resume != "" {
		gone = o.Why == hook.EndExited && o.ExitCode == 1 &&
			slices.ContainsFunc(noConversation, func(words string) bool { return strings.Contains(o.Screen, words) })
		deleted = gone
	}
	if !gone {
		return false
	}
	if err := os.Remove(s.conversationPath(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot forget a conversation", "agent", a.name, "err", err)
	}
	if deleted {
		s.note(journal.Event{Agent: a.name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text("the client has no conversation " + spec.Resume + "; the next session begins a new one")})
		s.log.Warn("the conversation is gone; the next session begins a new one", "agent", a.name, "conversation", spec.Resume)
	}
	return deleted
}
