package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/transcript"
	"heartbeat/ptyrun/screen"
)

type logsCmd struct {
	Agent   string `arg:"" help:"The agent." complete:"agent"`
	Session string `arg:"" optional:"" help:"A past session of it, by its id as heartbeat history shows it."`
	Follow  bool   `help:"Go on with what comes, also in the agent's next sessions, until interrupted; -f for short."`
	Count   int    `short:"n" placeholder:"N" default:"50" help:"How many lines of the conversation to begin with, the newest (${default})."`
	Full    bool   `help:"Show prompts, tool calls and their answers in full, not in one line."`
	Raw     bool   `help:"Print the terminal's output instead: text, colours and what moves the cursor."`
}

// Help implements kong's HelpProvider.
func (logsCmd) Help() string {
	return `Prints what an agent was asked, said and did in its live session or, without one,
in the last: from the client's own transcript. With -o json each is one line,
before the envelope.

Examples:

    heartbeat logs triage
    heartbeat logs triage -f
    heartbeat logs triage 5f0c1a2b      # a past session, by its id in heartbeat history
    heartbeat logs triage --raw | less -R

What acts on the terminal of who looks (its clipboard, its title, queries that it
would answer) is left out of --raw; the file as it was written is
AGENT_DIR/.heartbeat/sessions/ID.log.`
}

// logLook is how often a transcript is looked at for more.
const logLook = 250 * time.Millisecond

func (c logsCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count < 0 {
		return nil, usagef("heartbeat logs --help", "-n is below 0")
	}
	if c.Session != "" && c.Follow {
		return nil, usagef("heartbeat logs "+c.Agent+" "+c.Session, "a past session has nothing to follow")
	}
	agent, err := a.agent(c.Agent)
	if err != nil {
		return nil, err
	}
	record, err := lastSession(agent)
	if err != nil && !c.Follow {
		return nil, err
	}
	if c.Session != "" {
		if record, err = a.pastSession(agent, record, c.Session); err != nil {
			return nil, err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	if c.Raw {
		return nil, c.raw(ctx, a, agent, record)
	}
	return nil, c.conversation(ctx, a, agent, record)
}

// saidIn is a session and where what was said in it is kept, or "".
type saidIn struct{ Session, Transcript string }

// shownBy is the session that an agent's record shows; nil for none.
func shownBy(agent *config.Agent) (*saidIn, error) {
	r, err := hook.ReadRecord(agent.Home)
	if err != nil || r == nil {
		return nil, err
	}
	return saidBy(agent, r.Session, r.Transcript)
}

// saidBy finds what a session has said: what its record claims, where that can
// be.
func saidBy(agent *config.Agent, session, claimed string) (*saidIn, error) {
	dir, err := launch.ConfigDir(agent)
	return &saidIn{session, transcript.Find(dir, agent.Dir, session, claimed)}, err
}

// lastSession is an agent's live or last session.
func lastSession(agent *config.Agent) (*saidIn, error) {
	r, err := shownBy(agent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if r == nil {
		return nil, &failure{
			status: exitError, err: fmt.Errorf("cannot find a session of agent %q: it has had none", agent.Name),
			hint: fmt.Sprintf("heartbeat logs %s -f waits for one", agent.Name),
		}
	}
	return r, nil
}

// pastSession is the session that begins with id, the last one where it is that.
func (a *app) pastSession(agent *config.Agent, last *saidIn, id string) (*saidIn, error) {
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(last.Session, id) {
		return last, nil
	}
	found := map[string]bool{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, err
		}
		if e.Kind == journal.Ended && e.Agent == agent.Name && strings.HasPrefix(e.Session, id) {
			found[e.Session] = true
		}
	}
	if len(found) != 1 {
		why := "the journal knows none"
		if len(found) > 1 {
			why = fmt.Sprintf("%d sessions begin so", len(found))
		}
		return nil, &failure{
			status: exitError, err: fmt.Errorf("cannot find session %q of agent %q: %s", id, agent.Name, why),
			hint: "heartbeat history " + agent.Name + " lists them, with -o json by their whole ids",
		}
	}
	past := slices.Collect(maps.Keys(found))[0]
	beside := ""
	if last.Transcript != "" {
		beside = filepath.Join(filepath.Dir(last.Transcript), past+".jsonl")
	}
	return saidBy(agent, past, beside)
}

// conversation prints the transcript of one session after the other.
func (c logsCmd) conversation(ctx context.Context, a *app, agent *config.Agent, record *saidIn) error {
	var (
		open  *transcript.Reader
		path  string
		first = true
	)
	defer func() {
		if open != nil {
			open.Close()
		}
	}()
	for {
		if record != nil && record.Transcript != path && record.Transcript != "" {
			next, err := transcript.Open(record.Transcript)
			if errors.Is(err, fs.ErrNotExist) && c.Session != "" {
				return c.noTranscript(record)
			}
			if err != nil && !c.Follow && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil {
				if open != nil {
					open.Close()
				}
				open, path = next, record.Transcript
			}
		}
		if open != nil {
			if err := c.print(a, open, first); err != nil {
				if gone(err) {
					return nil
				}
				return err
			}
			first = false
		} else if c.Session != "" {
			return c.noTranscript(record)
		} else if !c.Follow {
			return &failure{
				status: exitError, err: fmt.Errorf("cannot find the transcript of agent %q: its session has said nothing yet, or its transcript was removed", agent.Name),
				hint: fmt.Sprintf("heartbeat logs %s -f waits for it; heartbeat logs %[1]s --raw prints its terminal", agent.Name),
			}
		}
		if !c.Follow || !pause(ctx, logLook) {
			return nil
		}
		record, _ = shownBy(agent)
	}
}

func (c logsCmd) noTranscript(of *saidIn) error {
	return &failure{
		status: exitError, err: fmt.Errorf("cannot find the transcript of session %s: the client keeps none under its id; it was removed, or went on with another conversation", of.Session),
		hint: fmt.Sprintf("heartbeat logs %s %s --raw prints its terminal, while that is kept", c.Agent, c.Session),
	}
}

// print prints what is new; the first time the newest lines alone.
func (c logsCmd) print(a *app, r *transcript.Reader, first bool) error {
	if !first {
		var failed error
		err := r.Each(func(l transcript.Line) bool {
			failed = c.emit(a, l)
			return failed == nil
		})
		return errors.Join(failed, err)
	}
	last := newest[transcript.Line]{most: c.Count}
	if err := r.Each(func(l transcript.Line) bool { last.add(l); return true }); err != nil {
		return err
	}
	for _, l := range last.all {
		if err := c.emit(a, l); err != nil {
			return err
		}
	}
	return nil
}

// marks stand before what is printed.
var marks = map[transcript.Kind]string{
	transcript.Prompt: "> ", transcript.Text: "", transcript.Tool: "* ", transcript.Result: "  = ",
}

// logsIndent is as wide as the time that stands before a line.
const logsIndent = "         "

// lineColumns is how much of a prompt, a call or its answer is shown.
const lineColumns = 160

func (c logsCmd) emit(a *app, l transcript.Line) error {
	return a.out.emit(l, func(p *page) {
		colour := ""
		switch {
		case l.Failed:
			colour = p.red
		case l.Kind == transcript.Prompt:
			colour = p.cyan
		case l.Kind != transcript.Text:
			colour = p.dim
		}
		text := strings.TrimRight(l.Text.Raw(), "\n")
		if l.Name != "" {
			text = l.Name.String() + " " + text
		}
		if !c.Full && l.Kind != transcript.Text {
			text = shorten(foreign.Line(text), lineColumns)
		}
		first, rest, _ := strings.Cut(text, "\n")
		p.coloured(p.dim, l.At.Local().Format(time.TimeOnly)+" ")
		p.colouredLine(colour, marks[l.Kind]+first+"\n")
		for line := range strings.Lines(rest) { // under the text, not under the times
			p.printf("%s", logsIndent)
			p.colouredLine(colour, line)
		}
	})
}

// raw copies the terminal's log.
func (c logsCmd) raw(ctx context.Context, a *app, agent *config.Agent, record *saidIn) error {
	if a.Output == "json" {
		return usagef("heartbeat logs "+c.Agent+" --raw", "--raw has no JSON form")
	}
	out := screen.Only(a.stdio.out)
	for at := int64(0); ; {
		if record != nil {
			n, err := copyLog(out, agent, record.Session, at)
			switch {
			case gone(err):
				return nil
			case err != nil && !c.Follow:
				return fmt.Errorf("cannot read the terminal's log: %w", err)
			}
			at += n
		}
		if !c.Follow || !pause(ctx, logLook) {
			return nil
		}
		if r, _ := shownBy(agent); r != nil && (record == nil || r.Session != record.Session) {
			record, at, out = r, 0, screen.Only(a.stdio.out)
		}
	}
}

// maxRaw is how much of a terminal's log is shown, the end of it. The agent can
// make it any size; ours ends sooner.
const maxRaw = 128 << 20

// copyLog copies a session's terminal log from an offset on. The agent can
// write the folder: no link is followed.
func copyLog(w io.Writer, agent *config.Agent, session string, at int64) (int64, error) {
	name := session + ".log"
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return 0, fmt.Errorf("%q is not the id of a session", session)
	}
	logs, err := durable.OpenBelow(agent.Dir, filepath.Join(agent.Home, "sessions"))
	if err != nil {
		return 0, err
	}
	defer logs.Close()
	f, err := logs.OpenFile(name, os.O_RDONLY)
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

// pause waits; it returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
