package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

type attachCmd struct {
	Agent      string `arg:"" help:"The agent." complete:"agent"`
	ReadOnly   bool   `help:"Only watch: no key is passed on."`
	Wait       bool   `help:"Wait until a session lives, then join it."`
	DetachKeys string `placeholder:"KEYS" help:"What to press to leave the session, instead of ctrl-backslash: keys like ctrl-p or q, separated by commas."`
}

// Help implements kong's HelpProvider.
func (attachCmd) Help() string {
	return `Joins the terminal of an agent's live session. Several people can join; the window
has the size of the terminal that joined or was resized last. Press ctrl-\
(or --detach-keys) to leave; with --read-only, ctrl-c works too.

While somebody types, and for two minutes after their last key, the session gets no
queued prompts; "heartbeat status" says so. What they submit comes first: during the
current turn or after it, or at once if the session waits. While somebody is there,
the session is not ended for being idle, unless another agent needs its slot.

Leaving does not disturb the session and hands it back at once: it keeps waiting,
and the next prompt comes into the same conversation. (If the connection is lost, it
does so after the two minutes, or with "heartbeat resume".) Esc and commands like
/clear are the exception: if they leave the client with nothing to do, it cannot be
given a prompt without a paid turn. The session then stays while somebody is there
and ends idle-grace (10s) after they have left; the next prompt starts a new one.

Examples:

    heartbeat attach triage
    heartbeat attach triage --read-only
    heartbeat attach triage --wait
    heartbeat attach triage --detach-keys ctrl-p,ctrl-q`
}

// visited is how joining a session ended.
type visited struct {
	Agent    string       `json:"agent"`
	Session  string       `json:"session"`
	Detached bool         `json:"detached"`        // the session goes on
	Ended    foreign.Text `json:"ended,omitempty"` // why it ended
}

func (c attachCmd) run(ctx context.Context, a *app) (result, error) {
	if a.Output == "json" {
		return nil, usagef("heartbeat screen AGENT -o json", "attach is for people, not for -o json")
	}
	keys, err := attach.ParseKeys(cmp.Or(c.DetachKeys, `ctrl-\`))
	if err != nil {
		return nil, usagef("heartbeat attach --help", "--detach-keys: %w", err)
	}
	if !c.ReadOnly && (!ptyrun.IsTerminal(a.in) || !ptyrun.IsTerminal(a.stdio.out)) {
		return nil, usagef("heartbeat attach AGENT --read-only, or heartbeat screen AGENT", "attach needs a terminal")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	seat := attach.Seat{In: a.in, Out: a.stdio.out, Leave: keys, ReadOnly: c.ReadOnly}
	join := a.join
	if c.Wait {
		join = a.joinNext
	}
	v, err := join(ctx, c.Agent, seat.Guest())
	if errors.Is(err, errLeft) {
		return visited{Agent: c.Agent, Detached: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if ptyrun.IsTerminal(a.stdio.out) {
		seat.Greet = func() { a.sayHowToLeave(c) }
		defer func() { _, _ = a.stdio.out.WriteString(restoreTitle) }()
	}
	visit, err := v.Sit(ctx, seat)
	if err != nil {
		return nil, fmt.Errorf("cannot stay in the session: %w", err)
	}
	return visited{Agent: c.Agent, Session: v.Session.Session, Detached: visit.Left, Ended: visit.Ended}, nil
}

// sayHowToLeave says so in the first line, and in the title of the terminal while the
// session's screen stands in its place. The terminal is raw.
func (a *app) sayHowToLeave(c attachCmd) {
	keys := cmp.Or(c.DetachKeys, `Ctrl-\`)
	if c.ReadOnly {
		keys += " or Ctrl-C"
	}
	how := keys + " leaves the session of " + c.Agent + ", which continues"
	// A terminal that is gone ends the visit, too.
	_ = a.out.emit(nil, func(p *page) {
		p.coloured(p.cyan, how)
		p.printf("\r\n")
	})
	_, _ = a.stdio.out.WriteString(keepTitle + "\x1b]2;" + how + "\x07")
}

// The terminal's own title, put aside and brought back (xterm's control sequences).
const keepTitle, restoreTitle = "\x1b[22;2t", "\x1b[23;2t"

// join joins the live session of an agent.
func (a *app) join(ctx context.Context, agent string, g attach.Guest) (*attach.Viewer, error) {
	fleet, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	if _, err := findAgent(fleet, agent); err != nil {
		return nil, err
	}
	dir, err := runtimeDir(fleet)
	if err != nil {
		return nil, err
	}
	v, err := attach.Join(ctx, filepath.Join(dir, session.SocketName(agent)), g)
	if errors.Is(err, attach.ErrNobody) {
		return nil, &failure{
			status: exitNotRunning, err: fmt.Errorf("cannot join agent %q: %w", agent, err),
			hint: fmt.Sprintf("heartbeat status %s; a session lives while `heartbeat run` has work for it", agent),
		}
	}
	return v, err
}

// errLeft means that nobody waits for a session any more.
var errLeft = errors.New("nobody waits for the session any more")

// joinEvery is how often to check for a session that is awaited.
const joinEvery = 200 * time.Millisecond

// joinNext is join, but waits until there is a session.
func (a *app) joinNext(ctx context.Context, agent string, g attach.Guest) (*attach.Viewer, error) {
	line := newProgressLine(a)
	defer line.end()
	for looks := 0; ; looks++ {
		v, err := a.join(ctx, agent, g)
		switch {
		case ctx.Err() != nil:
			return nil, errLeft
		case !errors.Is(err, attach.ErrNobody):
			return v, err
		}
		if looks%int(2*time.Second/joinEvery) == 0 {
			line.show("waiting for a session of " + agent + "; " + a.waitsFor(ctx, agent))
		}
		if !pause(ctx, joinEvery) {
			return nil, errLeft
		}
	}
}

// waitsFor says what a session of an agent waits for.
func (a *app) waitsFor(ctx context.Context, agent string) string {
	live, err := askStatus(ctx, a.known)
	if mute := control.MuteOf(err, time.Time{}); mute != nil {
		return mute.Text(time.Now()) + "; " + mute.Do(a.ours())
	}
	if errors.Is(err, control.ErrNotRunning) {
		return "no scheduler runs it"
	}
	if err != nil {
		return err.Error()
	}
	for _, s := range live.Agents {
		if s.Agent == agent {
			text := "it is " + string(s.State)
			if s.Reason != "" {
				text += ": " + s.Reason.String()
			}
			return text
		}
	}
	return "the running scheduler does not have it"
}

func (v visited) text(p *page) {
	switch {
	case v.Session == "":
		p.saidf("%s has no session yet; nobody waits for one any more", v.Agent)
	case v.Detached:
		p.saidf("detached from %s; its session continues: heartbeat attach %s joins it again", v.Agent, v.Agent)
	case v.Ended != "":
		p.saidf("the session of %s has ended: %s", v.Agent, v.Ended)
	default:
		p.saidf("the session of %s is gone", v.Agent)
	}
}
