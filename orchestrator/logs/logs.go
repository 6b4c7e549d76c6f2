// Package logs finds what agents were asked, said and did, for people to read: the
// conversation of an agent's live session, the last one, a past one or all since a time, and what its
// terminal showed. It follows an agent from one session to the next.
package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/transcript"
)

// Session is a session, and where its conversation is kept, or "".
type Session struct{ ID, Transcript string }

// Shown returns an agent's live session, or its last one, as its shim has noted it in the state
// directory; nil if it has had none.
func Shown(a *config.Agent, stateDir string) (*Session, error) {
	t, err := session.TalkOf(stateDir, a.Home)
	if err != nil {
		return nil, err
	}
	if t == nil { // no shim of this version has been there
		last, known, err := journal.LastOf(stateDir, a.Name, journal.Ended)
		if !known || last.Session == "" || err != nil {
			return nil, err
		}
		t = &session.Talk{Session: last.Session}
	}
	return found(a, t.Session, t.Transcript)
}

// found finds the conversation of a session: where its client claims, if it can be
// there.
func found(a *config.Agent, id, claimed string) (*Session, error) {
	dir, err := launch.ConfigDir(a)
	return &Session{id, transcript.Find(dir, a.Dir, id, claimed)}, err
}

// NotFoundError means that there is nothing to show.
type NotFoundError struct{ what, hint string }

// Error says what.
func (e *NotFoundError) Error() string { return "cannot find " + e.what }

// Hint says what to type instead.
func (e *NotFoundError) Hint() string { return e.hint }

// Last returns an agent's live or last session; the error is a *NotFoundError if it
// has had none.
func Last(a *config.Agent, stateDir string) (*Session, error) {
	s, err := Shown(a, stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if s == nil {
		return nil, &NotFoundError{
			fmt.Sprintf("a session of agent %q: it has had none", a.Name), fmt.Sprintf("heartbeat logs %s -f waits for one", a.Name),
		}
	}
	return s, nil
}

// Past returns the session of an agent whose id begins with a prefix, by the
// journal in the state directory; the error is a *NotFoundError if there is none,
// or more than one. last is the agent's last one.
func Past(a *config.Agent, stateDir string, last *Session, prefix string) (*Session, error) {
	if strings.HasPrefix(last.ID, prefix) {
		return last, nil
	}
	ids := map[string]bool{}
	for e, err := range journal.Read(stateDir) {
		if err != nil {
			return nil, err
		}
		if e.Kind == journal.Ended && e.Agent == a.Name && strings.HasPrefix(e.Session, prefix) {
			ids[e.Session] = true
		}
	}
	if len(ids) != 1 {
		why := "the journal knows none"
		if len(ids) > 1 {
			why = fmt.Sprintf("%d sessions begin so", len(ids))
		}
		return nil, &NotFoundError{
			fmt.Sprintf("session %q of agent %q: %s", prefix, a.Name, why),
			"heartbeat history " + a.Name + " lists them, with -o json by their whole ids",
		}
	}
	past := slices.Collect(maps.Keys(ids))[0]
	beside := ""
	if last.Transcript != "" {
		beside = filepath.Join(filepath.Dir(last.Transcript), past+".jsonl")
	}
	return found(a, past, beside)
}

// Conversation reads what an agent was asked, said and did, and continues where it
// stopped, also in the agent's next sessions.
type Conversation struct {
	Agent *config.Agent
	// StateDir is where its sessions are noted.
	StateDir string
	// Tail, if not 0, is how many bytes at its end a conversation is read from.
	Tail int64
	open *transcript.Reader
	of   Session
	// shown is the session of the last Of, whether it has a transcript or not; earlier are
	// those before it.
	shown   Session
	earlier []*past
}

// Close closes what is open.
func (c *Conversation) Close() {
	if c.open != nil {
		_ = c.open.Close() // it was only read
		c.open = nil
	}
}

// Of switches to the conversation of a session; it does nothing while that does not
// exist, or if it is being read already. An error is about a transcript that exists
// and cannot be read.
func (c *Conversation) Of(s *Session) error {
	if s != nil {
		c.shown = *s
	}
	if s == nil || s.Transcript == "" || c.open != nil && s.Transcript == c.of.Transcript {
		return nil
	}
	next, err := transcript.Open(s.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Close()
	c.open, c.of = next, *s
	if c.Tail > 0 {
		return next.Skip(c.Tail)
	}
	return nil
}

// Each calls do with what was said and done since the last call, until do returns
// false. If there is no transcript yet, the error is a *NotFoundError.
func (c *Conversation) Each(do func(transcript.Line) bool) error {
	if c.open == nil {
		return &NotFoundError{
			fmt.Sprintf("the transcript of agent %q: its session has said nothing yet, or its transcript was removed", c.Agent.Name),
			fmt.Sprintf("heartbeat logs %s -f waits for it; heartbeat logs %[1]s --raw prints its terminal", c.Agent.Name),
		}
	}
	return c.open.Each(do)
}

// Follow is Each in the agent's live or last session, after the rest of the session before.
func (c *Conversation) Follow(do func(transcript.Line) bool) error {
	now, _ := Shown(c.Agent, c.StateDir) // if it cannot be read now, it may be later
	if now == nil || now.Transcript == c.of.Transcript && c.open != nil {
		if c.open == nil {
			return nil
		}
		return c.open.Each(do)
	}
	more := true
	rest := func(l transcript.Line) bool { more = do(l); return more }
	if c.open != nil {
		if err := c.open.Each(rest); err != nil || !more {
			return err
		}
	}
	_ = c.Of(now) // the next call tries again
	if c.open == nil || c.of.Transcript != now.Transcript {
		return nil
	}
	return c.open.Each(rest)
}

// Gone returns the error for a session whose conversation is no longer kept.
func Gone(a *config.Agent, s *Session) error {
	return &NotFoundError{
		fmt.Sprintf("the transcript of session %s: the client keeps none under its id; it was removed, or went on with another conversation", s.ID),
		fmt.Sprintf("heartbeat logs %s %s --raw prints its terminal, while that is kept", a.Name, s.ID),
	}
}

// Known reports whether the session's conversation is being read.
func (c *Conversation) Known(s *Session) bool { return c.open != nil && c.of.ID == s.ID }

// LastLine returns what an agent said or called last in its live or last session; nil if that is
// nothing yet, or cannot be read: whoever wants to know why reads the conversation.
func LastLine(a *config.Agent, stateDir string) *transcript.Line {
	s, err := Shown(a, stateDir)
	if err != nil || s == nil || s.Transcript == "" {
		return nil
	}
	r, err := transcript.Open(s.Transcript)
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }() // it was only read
	last, found, err := r.Last(func(l transcript.Line) bool { return l.Kind == transcript.Text || l.Kind == transcript.Tool })
	if err != nil || !found {
		return nil
	}
	return &last
}

// maxRaw is how much of a terminal's log is copied, from its end. The agent can
// make it any size; our own log is smaller.
const maxRaw = 128 << 20

// Terminal copies what the terminal of an agent's session showed, from an offset
// on, and returns how far it got. The agent can write the folder: no link is
// followed.
func Terminal(w io.Writer, a *config.Agent, session string, at int64) (n int64, err error) {
	name := session + ".log"
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return 0, fmt.Errorf("%q is not the id of a session", session)
	}
	sessions, err := durable.OpenBelow(a.Dir, filepath.Join(a.Home, "sessions"))
	if err != nil {
		return 0, err
	}
	defer sessions.Close()
	f, err := sessions.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	from := max(at, info.Size()-maxRaw)
	if _, err := io.Copy(w, io.NewSectionReader(f, from, max(0, info.Size()-from))); err != nil {
		return 0, err
	}
	return max(0, info.Size()-at), nil
}

// Said is a line of an agent's conversation.
type Said struct {
	Agent string `json:"agent"`
	transcript.Line
}

// Newest returns the newest wanted lines of several conversations, at most most, in
// order of time, with those of the sessions that Since has added. One of several may have
// no lines yet; a single one must have some.
func Newest(all []*Conversation, most int, wanted func(transcript.Line) bool) ([]Said, error) {
	var lines []Said
	var errs []error
	for _, c := range all {
		var own []Said
		err := c.all(func(l transcript.Line) bool {
			if wanted(l) {
				own = append(own, Said{c.Agent.Name, l})
			}
			if len(own) > 2*most+1 {
				own = slices.Clone(own[len(own)-most:])
			}
			return true
		})
		if _, quiet := errors.AsType[*NotFoundError](err); err != nil && (!quiet || len(all) == 1 && len(own) == 0) {
			errs = append(errs, err)
		}
		lines = append(lines, own...)
	}
	if len(all) > 1 || len(all) == 1 && len(all[0].earlier) > 0 {
		slices.SortStableFunc(lines, func(x, y Said) int { return cmp.Compare(x.At.UnixNano(), y.At.UnixNano()) })
	}
	return lines[max(0, len(lines)-most):], errors.Join(errs...)
}
