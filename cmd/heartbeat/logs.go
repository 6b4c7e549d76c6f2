package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/logs"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/transcript"
	"heartbeat/ptyrun/screen"
)

type logsCmd struct {
	Agents []string `arg:"" optional:"" name:"agent" help:"The agents; all of them when none is named. Of one agent also a past session, by its id as heartbeat history shows it." complete:"session"`
	Follow bool     `help:"Go on with what comes, also in the agents' next sessions, until interrupted; -f for short."`
	Since  since    `placeholder:"TIME" help:"Begin at this time: 2h, 1w, 09:30, 2026-03-01."`
	Count  *int     `short:"n" placeholder:"N" help:"How many lines to begin with, the newest (50; all with --since)."`
	Full   bool     `help:"Show prompts, tool calls and their answers in full, not in one line."`
	Raw    bool     `help:"Print the terminal's output instead: text, colours and what moves the cursor. Of one agent."`
}

// Help implements kong's HelpProvider.
func (logsCmd) Help() string {
	return `Prints what agents were asked, said and did in their live sessions, or in the last
one if none is live; with --since in all of their sessions from then on. It reads the client's own transcripts, in order of time. With
-o json each item is one line, before the envelope.

Examples:

    heartbeat logs triage
    heartbeat logs -f                   # the whole fleet
    heartbeat logs triage builder --since 2h
    heartbeat logs triage 5f0c1a2b      # a past session, by its id in history
    heartbeat logs triage --raw | less -R

--raw leaves out what would act on your own terminal (its clipboard, its title,
queries that it would answer). The unfiltered file is
AGENT_DIR/.heartbeat/sessions/ID.log.`
}

// logLook is how often a transcript is checked for more.
const logLook = 250 * time.Millisecond

func (c logsCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 0 {
		return nil, usagef("heartbeat logs --help", "-n is below 0")
	}
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	session := ""
	if len(c.Agents) == 2 && f.Agent(c.Agents[1]) == nil {
		c.Agents, session = c.Agents[:1], c.Agents[1]
	}
	agents, err := chooseAgents(f, c.Agents)
	if err != nil {
		return nil, err
	}
	if session != "" && c.Follow {
		return nil, usagef("heartbeat logs "+c.Agents[0]+" "+session, "a past session has nothing to follow")
	}
	ctx, stop := a.whileRead(ctx)
	defer stop()
	if len(c.Agents) == 1 {
		return nil, c.ofOne(ctx, a, f, agents[0], session)
	}
	if c.Raw {
		return nil, usagef("heartbeat logs AGENT --raw", "--raw is of one agent")
	}
	return nil, c.ofAll(ctx, a, f, agents)
}

// ofOne prints what one agent has said, or its terminal's output: in its last session and
// those since --since, or in the named past session.
func (c logsCmd) ofOne(ctx context.Context, a *app, f *config.Fleet, agent *config.Agent, session string) error {
	dir, err := owner.StateDir(f)
	if err != nil {
		return err
	}
	shown, err := c.session(dir, agent, session)
	if err != nil {
		return err
	}
	of := &logs.Conversation{Agent: agent, StateDir: dir}
	if c.Raw {
		return c.raw(ctx, a, of, shown)
	}
	defer of.Close()
	if err := of.Of(shown); err != nil && !c.Follow {
		return err
	}
	if session != "" && !of.Known(shown) {
		return logs.Gone(agent, shown)
	}
	all := []*logs.Conversation{of}
	if session == "" {
		if err := c.earlier(f, all); err != nil {
			return err
		}
	}
	return c.show(ctx, a, all)
}

// session returns the past session that a prefix of an id names, or the agent's last one if
// it is "". With --follow an agent need not have had one yet.
func (c logsCmd) session(dir string, agent *config.Agent, id string) (*logs.Session, error) {
	last, err := logs.Last(agent, dir)
	switch {
	case err != nil && !c.Follow:
		return nil, err
	case id == "":
		return last, nil
	}
	return logs.Past(agent, dir, last, id)
}

// earlier adds the sessions since --since, if it is given.
func (c logsCmd) earlier(f *config.Fleet, all []*logs.Conversation) error {
	if c.Since.IsZero() {
		return nil
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return err
	}
	return logs.Since(all, dir, c.Since.Time)
}

// ofAll prints what several agents have said.
func (c logsCmd) ofAll(ctx context.Context, a *app, f *config.Fleet, agents []*config.Agent) error {
	dir, err := owner.StateDir(f)
	if err != nil {
		return err
	}
	var all []*logs.Conversation
	for _, agent := range agents {
		of := &logs.Conversation{Agent: agent, StateDir: dir}
		defer of.Close()
		s, err := logs.Shown(agent, dir)
		if err == nil {
			err = of.Of(s)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.warn(fmt.Sprintf("cannot read what agent %q has said: %v", agent.Name, err))
		}
		all = append(all, of)
	}
	if err := c.earlier(f, all); err != nil {
		return err
	}
	return c.show(ctx, a, all)
}

// show prints conversations, beginning with the newest lines of all, and follows
// them.
func (c logsCmd) show(ctx context.Context, a *app, all []*logs.Conversation) error {
	names := prefixes(all)
	past, err := logs.Newest(all, c.Since.most(c.Count, 50), c.wants)
	if err != nil && !c.Follow {
		return err
	}
	for _, of := range all {
		if !c.Follow || !c.Since.IsZero() { // whoever follows waits for what a session says
			warnSilent(a, of)
		}
	}
	var printed error
	for _, said := range past {
		if printed = c.emit(a, names, said); printed != nil {
			break
		}
	}
	for printed == nil && c.Follow && pause(ctx, logLook) {
		for _, of := range all {
			err := of.Follow(func(l transcript.Line) bool {
				if c.wants(l) {
					printed = c.emit(a, names, logs.Said{Agent: of.Agent.Name, Line: l})
				}
				return printed == nil
			})
			if printed == nil {
				printed = err
			}
			if printed != nil {
				break
			}
		}
	}
	if gone(printed) {
		printed = nil
	}
	return printed
}

// warnSilent says of which sessions nothing is shown.
func warnSilent(a *app, of *logs.Conversation) {
	ids := of.Silent()
	if len(ids) == 0 {
		return
	}
	id, _, _ := strings.Cut(ids[len(ids)-1], "-")
	which := fmt.Sprintf("session %s of agent %q has said nothing, or its transcript is gone", id, of.Agent.Name)
	if n := len(ids); n > 1 {
		which = fmt.Sprintf("%d sessions of agent %q have said nothing, or their transcripts are gone; the last is %s", n, of.Agent.Name, id)
	}
	a.out.warnNow(fmt.Sprintf("%s: %s logs %s %s --raw prints its terminal", which, a.ours(), of.Agent.Name, id))
}

func (c logsCmd) wants(l transcript.Line) bool { return !l.At.Before(c.Since.Time) }

// prefix precedes the lines of an agent.
type prefix struct {
	text   string
	colour int
}

// prefixes returns those of several agents, all equally wide; a single agent needs
// none.
func prefixes(all []*logs.Conversation) map[string]prefix {
	if len(all) < 2 {
		return nil
	}
	widest := 0
	for _, of := range all {
		widest = max(widest, len(of.Agent.Name))
	}
	names := map[string]prefix{}
	for i, of := range all {
		names[of.Agent.Name] = prefix{fmt.Sprintf("%-*s ", widest, of.Agent.Name), i}
	}
	return names
}

// marks precede what is printed.
var marks = map[transcript.Kind]string{
	transcript.Prompt: "> ", transcript.Text: "", transcript.Tool: "* ", transcript.Result: "  = ",
}

// lineColumns is how much of a prompt, a call or its answer is shown.
const lineColumns = 160

func (c logsCmd) emit(a *app, names map[string]prefix, said logs.Said) error {
	return a.out.emit(said, func(p *page) {
		l := said.Line
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
		at, of := whenSaid(l.At, time.Now()), names[said.Agent]
		first, rest, _ := strings.Cut(text, "\n")
		p.coloured(p.dim, at)
		p.coloured([]string{p.green, p.yellow, p.cyan}[of.colour%3], of.text)
		p.colouredLine(colour, marks[l.Kind]+first+"\n")
		indent := strings.Repeat(" ", len(at)+len(of.text))
		for line := range strings.Lines(rest) { // under the text, not under the times
			p.printf("%s", indent)
			p.colouredLine(colour, line)
		}
	})
}

// whenSaid returns a time; today's without its date.
func whenSaid(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly) + " "
	}
	return at.Format(time.DateTime) + " "
}

// raw copies the terminal's log of a session, and with --follow of those that come after it.
func (c logsCmd) raw(ctx context.Context, a *app, in *logs.Conversation, of *logs.Session) error {
	agent := in.Agent
	if a.Output == "json" {
		return usagef("heartbeat logs "+agent.Name+" --raw", "--raw has no JSON form")
	}
	shown := screen.Page
	if c.Follow {
		shown = screen.Only
	}
	out := shown(stdout{a.stdio.out})
	for at := int64(0); ; {
		if of != nil {
			n, err := logs.Terminal(out, agent, of.ID, at)
			switch {
			case gone(err):
				return nil
			case isUnprinted(err):
				return err
			case err != nil && !c.Follow:
				return fmt.Errorf("cannot read the terminal's log: %w", err)
			}
			at += n
		}
		if !c.Follow || !pause(ctx, logLook) {
			return nil
		}
		if now, _ := logs.Shown(agent, in.StateDir); now != nil && (of == nil || now.ID != of.ID) {
			of, at, out = now, 0, shown(stdout{a.stdio.out})
		}
	}
}

// pause waits; it returns false if ctx ends first.
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
