package launch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
)

// conversation is the client's conversation that an agent's last sessions had. context: resume
// continues it, and so does an entry whose turn the service has ended. The ids are ours; the
// agent's own files are not consulted.
type conversation struct {
	id  string
	dir string // the client keeps conversations by directory
	// session is the last one that had it; before is the one that the entry in flight names, if
	// session was started to continue that, or "".
	session, before string
}

// conversationOf returns that of the agent with a key; the zero value: none is known.
func conversationOf(v *store.View, key string) (c conversation, err error) {
	_, err = v.One(`SELECT id, dir, session, before FROM conversations WHERE agent = $1`, []any{key}, &c.id, &c.dir, &c.session, &c.before)
	return c, err
}

// converse returns the id of the conversation that a new session continues, or ""
// if it begins one, under the id of the session; and whether the interrupted entry
// continues in it. This is kept before the session starts, so that it is found
// again after the scheduler is killed.
func (t *Ticket) converse(newSession string, now time.Time) (resume string, goesOn bool, err error) {
	if t.Apart != "" {
		return t.Apart, t.Interrupted != nil, nil
	}
	err = t.Store.Write(context.Background(), func(c *store.Change) error {
		kept, err := conversationOf(&c.View, t.Key)
		if err != nil {
			return err
		}
		next := conversation{dir: t.Agent.Dir, session: newSession}
		if resume, goesOn = "", false; kept.id != "" && kept.dir == t.Agent.Dir {
			goesOn = kept.had(t.Interrupted)
			if goesOn || kept.had(t.Unproven) || t.Agent.Context == hook.ContextResume || now.Before(t.GoesOn) {
				resume = kept.id
			}
		}
		switch {
		case goesOn:
			next.before = t.Interrupted.Session
		case resume != "" && kept.had(t.Unproven):
			next.before = t.Unproven.Session
		}
		next.id = cmp.Or(resume, newSession)
		_, err = c.Do(`INSERT INTO conversations (agent, id, dir, session, before) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (agent) DO UPDATE SET id = excluded.id, dir = excluded.dir, session = excluded.session, before = excluded.before`,
			t.Key, next.id, next.dir, next.session, next.before)
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("cannot keep which conversation the session has: %w", err)
	}
	return resume, goesOn, nil
}

// Of returns the conversation of the last sessions of the agent with a key, if an entry in
// flight was worked on in it, or "".
func Of(r *store.Reader, key string, f *inbox.InFlight) string {
	kept, err := store.Get(context.Background(), r, func(v *store.View) (conversation, error) { return conversationOf(v, key) })
	if err != nil || !kept.had(f) {
		return ""
	}
	return kept.id
}

// had reports whether an entry was worked on in the conversation.
func (c *conversation) had(f *inbox.InFlight) bool {
	return f != nil && f.Session != "" && (f.Session == c.session || f.Session == c.before)
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

// Forget forgets a conversation of the agent with a key, if it is the one of its queue: what was
// set aside goes on in another one.
func Forget(s *store.Store, key, conversation string) error {
	return s.Write(context.Background(), func(c *store.Change) error {
		_, err := c.Do(`DELETE FROM conversations WHERE agent = $1 AND id = $2`, key, conversation)
		return err
	})
}
