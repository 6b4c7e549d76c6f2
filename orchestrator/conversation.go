package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
)

// conversation is what an agent with context: resume goes on with:
// conversations/KEY.json in the state directory. The id is ours, from the
// session that began it; what the agent's own files say is not asked.
type conversation struct {
	ID  string `json:"id"`
	Dir string `json:"dir"` // the client keeps conversations by directory
}

func (s *Scheduler) conversationPath(a *agent) string {
	return filepath.Join(s.opt.StateDir, "conversations", a.key+".json")
}

// resume returns the id of the conversation that an agent goes on with, or "".
// Where there is none, one begins under the id of the new session, and that is
// kept before it starts, so that a scheduler that is killed finds it again.
func (s *Scheduler) resume(a *agent, c *config.Agent, newSession string) (string, error) {
	if c.Context != hook.ContextResume {
		return "", nil
	}
	var kept conversation
	err := state.Load(s.conversationPath(a), &kept)
	if err == nil && kept.ID != "" && kept.Dir == c.Dir {
		return kept.ID, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "", state.Save(s.conversationPath(a), conversation{ID: newSession, Dir: c.Dir})
}

// noConversation is what the client says to --resume with an id that it does
// not know (measured in 2.1.329; it exits with 1).
const noConversation = "No conversation found"

// conversed forgets a conversation that does not exist: its first session
// never began, or the client has deleted it.
func (s *Scheduler) conversed(a *agent, c *config.Agent, spec session.Spec, o session.Outcome) {
	gone := !o.Bound // it never began
	if spec.Resume != "" {
		gone = o.Why == hook.EndExited && o.ExitCode == 1 && strings.Contains(o.Screen, noConversation)
	}
	if c.Context != hook.ContextResume || !gone {
		return
	}
	if err := os.Remove(s.conversationPath(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot forget a conversation", "agent", c.Name, "err", err)
	}
	if spec.Resume != "" {
		s.note(Event{Agent: c.Name, Kind: "forgot", Session: spec.Session, Detail: "the client has no conversation " + spec.Resume + "; the next session begins a new one"})
		s.log.Warn("the conversation is gone; the next session begins a new one", "agent", c.Name, "conversation", spec.Resume)
	}
}
