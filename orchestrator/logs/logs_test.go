package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/transcript"
)

// room is an agent whose client keeps its conversations in a folder of the test.
type room struct {
	t *testing.T
	*config.Agent
	kept  string
	state string
}

func newRoom(t *testing.T, name string) *room {
	t.Helper()
	dir := t.TempDir()
	r := &room{t, &config.Agent{
		Name: name, Dir: dir, Home: filepath.Join(dir, ".heartbeat"),
		Env: map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(dir, "client")},
	}, filepath.Join(dir, "client/projects/somewhere"), t.TempDir()}
	// What an agent writes of a session means nothing.
	err := errors.Join(os.MkdirAll(r.kept, 0o700), os.MkdirAll(r.Home, 0o700), os.WriteFile(filepath.Join(r.Home, "session.json"), []byte(`{"session":"forged"}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	r.says("forged", 0, "forged")
	return r
}

// says appends what the agent says in a session at a minute.
func (r *room) says(session string, minute int, text string) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.kept, session+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, `{"type":"assistant","timestamp":"2026-03-01T12:%02d:00Z","message":{"content":[{"type":"text","text":%q}]}}`+"\n", minute, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// shows makes a session the agent's last one.
func (r *room) shows(id string) {
	r.t.Helper()
	if err := (session.Talk{Session: id}).Note(r.state, r.Home); err != nil {
		r.t.Fatal(err)
	}
}

// follows returns what Follow yields now.
func (r *room) follows(c *Conversation) string {
	r.t.Helper()
	var said []string
	if err := c.Follow(func(l transcript.Line) bool { said = append(said, l.Text.Raw()); return true }); err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(said, " ")
}

// TestTheLastWordsOfASessionAreFollowed: what it said between the last look and
// the beginning of the next session was left out.
func TestTheLastWordsOfASessionAreFollowed(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "triage")
	c := &Conversation{Agent: r.Agent, StateDir: r.state}
	defer c.Close()
	if got := r.follows(c); got != "" {
		t.Errorf("before any session: %q", got)
	}
	r.shows("first")
	if got := r.follows(c); got != "" {
		t.Errorf("before its transcript is there: %q", got)
	}
	r.says("first", 0, "one")
	if got := r.follows(c); got != "one" {
		t.Errorf("the first session: %q", got)
	}
	r.says("first", 1, "two")
	r.shows("second")
	if got := r.follows(c); got != "two" {
		t.Errorf("the next session has said nothing yet: %q", got)
	}
	r.says("first", 2, "three")
	r.says("second", 3, "four")
	if got := r.follows(c); got != "three four" {
		t.Errorf("both: %q", got)
	}
	if got := r.follows(c); got != "" {
		t.Errorf("again: %q", got)
	}
}

// The newest of several come in the order of time; who has said nothing yet is no
// error among several, and one alone is.
func TestNewestOfSeveral(t *testing.T) {
	t.Parallel()
	a, b, quiet := newRoom(t, "a"), newRoom(t, "b"), newRoom(t, "quiet")
	for minute, r := range []*room{a, b, a, b, b} {
		r.says("s", minute, fmt.Sprint(minute))
	}
	all := func(rooms ...*room) []*Conversation {
		var cs []*Conversation
		for _, r := range rooms {
			r.shows("s")
			s, err := Shown(r.Agent, r.state)
			c := &Conversation{Agent: r.Agent, StateDir: r.state}
			if err = errors.Join(err, c.Of(s)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			cs = append(cs, c)
		}
		return cs
	}
	from := time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)
	for _, tt := range []struct {
		since time.Time
		most  int
		want  string
	}{{time.Time{}, 50, "a0 b1 a2 b3 b4"}, {time.Time{}, 2, "b3 b4"}, {from, 50, "b1 a2 b3 b4"}, {time.Time{}, 0, ""}} {
		lines, err := Newest(all(a, b, quiet), tt.most, func(l transcript.Line) bool { return !l.At.Before(tt.since) })
		var got []string
		for _, l := range lines {
			got = append(got, l.Agent+l.Text.Raw())
		}
		if text := strings.Join(got, " "); text != tt.want || err != nil {
			t.Errorf("%+v: %q, %v", tt, text, err)
		}
	}
	_, err := Newest(all(quiet), 50, func(transcript.Line) bool { return true })
	if missing, ok := errors.AsType[*NotFoundError](err); !ok || missing.Hint() == "" {
		t.Errorf("one that has said nothing: %v", err)
	}
}

// An agent can write the folder of terminals' logs: no name leads out of it.
func TestATerminalIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "triage")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(r.Home, "sessions"), 0o700), os.WriteFile(filepath.Join(r.Home, "sessions/s.log"), []byte("shown"), 0o600),
		os.WriteFile(filepath.Join(r.Dir, "secret.log"), []byte("secret"), 0o600), os.Symlink(filepath.Join(r.Dir, "secret.log"), filepath.Join(r.Home, "sessions/link.log")),
	); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if n, err := Terminal(&out, r.Agent, "s", 0); n != 5 || err != nil || out.String() != "shown" {
		t.Errorf("%d, %v, %q", n, err, out.String())
	}
	if n, err := Terminal(&out, r.Agent, "s", 5); n != 0 || err != nil || out.String() != "shown" {
		t.Errorf("from its end: %d, %v, %q", n, err, out.String())
	}
	for _, session := range []string{"link", "../../secret", "/etc/passwd", ""} {
		if _, err := Terminal(&out, r.Agent, session, 0); err == nil || out.String() != "shown" {
			t.Errorf("%q: %v, %q", session, err, out.String())
		}
	}
}

// TestLastLine: of the agent's last session, and nothing where there
// is nothing.
func TestLastLine(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "triage")
	if l := LastLine(r.Agent, r.state); l != nil {
		t.Errorf("before any session: %+v", l)
	}
	r.says("first", 0, "one")
	r.shows("first")
	r.says("first", 1, "two")
	if l := LastLine(r.Agent, r.state); l == nil || l.Text.Raw() != "two" {
		t.Errorf("%+v", l)
	}
	r.shows("second")
	if l := LastLine(r.Agent, r.state); l != nil {
		t.Errorf("a session that has said nothing yet: %+v", l)
	}
}
