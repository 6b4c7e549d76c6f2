package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

type eventsCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; the whole fleet when none is named." complete:"agent"`
	Follow bool     `help:"Go on with what happens from now on, until interrupted; -f for short."`
	Verify bool     `help:"Instead compare each event of the journal with its checksum."`
	Since  since    `placeholder:"TIME" help:"Begin at this time: 2h, 1w, 09:30, 2026-03-01."`
	Count  *int     `short:"n" placeholder:"N" help:"How many events to begin with, the newest (50; all with --since)."`
}

// Help implements kong's HelpProvider.
func (eventsCmd) Help() string {
	return `Prints the journal of the fleet: what happened to each agent, why, and what comes
next. With -o json each event is one line, before the envelope.

Examples:

    heartbeat events
    heartbeat events -f triage
    heartbeat events --since 2h
    heartbeat events -n 1000 -o json
    heartbeat events --verify`
}

func (c eventsCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 0 {
		return nil, usagef("heartbeat events --help", "-n is below 0")
	}
	f, _, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	if c.Verify {
		return c.verify(ctx, dir)
	}
	ctx, stop := a.whileRead(ctx)
	defer stop()
	return nil, c.show(ctx, a, dir)
}

// show prints the newest events of a journal and, with --follow, those that come.
func (c eventsCmd) show(ctx context.Context, a *app, dir string) error {
	events := journal.Read(dir)
	last, live := newest[journal.Event]{most: c.Since.most(c.Count, 50)}, false
	var printed error
	flush := func() {
		for _, e := range last.all {
			if printed = c.print(a, e); printed != nil {
				return
			}
		}
		live = true
	}
	if c.Follow {
		events = journal.Follow(ctx, dir, flush)
	}
	for e, err := range events {
		switch {
		case err != nil:
			return err
		case !c.wants(e):
		case live:
			printed = c.print(a, e)
		default:
			last.add(e)
		}
		if printed != nil {
			break
		}
	}
	if !c.Follow {
		flush()
	}
	if gone(printed) {
		printed = nil
	}
	return printed
}

// verify compares each event of a journal with its checksum.
func (eventsCmd) verify(ctx context.Context, dir string) (result, error) {
	v, err := journal.Verify(ctx, dir)
	if err == nil && len(v.Damaged) > 0 {
		err = fmt.Errorf("cannot trust %d of %d events of the journal: %s", len(v.Damaged)+v.More, v.Lines, strings.Join(v.Damaged, ", "))
	}
	if err != nil {
		return nil, err
	}
	return verified(v), nil
}

type verified journal.Verified

func (v verified) text(p *page) {
	p.printf("%d events are as they were written", v.Lines-v.Unsummed)
	if v.Unsummed > 0 {
		p.printf("; %d of older versions have no checksum", v.Unsummed)
	}
	p.printf("\n")
}

func (c eventsCmd) wants(e journal.Event) bool {
	return !e.At.Before(c.Since.Time) && (len(c.Agents) == 0 || slices.Contains(c.Agents, e.Agent))
}

// print prints one event. An error means that nobody reads any more.
func (eventsCmd) print(a *app, e journal.Event) error {
	return a.out.emit(e, func(p *page) { eventText(p, e) })
}

func eventText(p *page, e journal.Event) {
	const indent = "    "
	at := e.At.Local().Format(time.DateTime) + " "
	p.coloured(p.dim, at)
	used := len(at)
	if e.Agent != "" {
		used = p.word(used, indent, "", e.Agent) + 1
		p.printf(" ")
	}
	what, colour := string(e.Kind), ""
	switch e.Kind {
	case journal.StateChanged:
		from, to := e.Move()
		what = from + " → " + to
		colour = stateCell(p, status.State(e.State)).colour
	case journal.Recovered, journal.TriggerFailed, journal.RequestsRefused, journal.ReloadFailed, journal.Swept, journal.DirectoryLost, journal.DirectoryFound, journal.QueueLost, journal.Stuck, journal.TriggerAnew, journal.OverBudget, journal.Forged, journal.Stray:
		colour = p.yellow
	}
	p.rest(p.word(used, indent, colour, what), indent, eventRest(e))
	p.told(indent, strings.TrimSpace(e.Detail.Raw()))
}

// eventRest is what stands behind the kind of an event: it begins with its separator.
func eventRest(e journal.Event) (text string) {
	switch e.Kind {
	case journal.Ended:
		text = fmt.Sprintf(", %d done", e.Acknowledged)
	case journal.Stopped:
		text = " " + stopText(e)
	case journal.Acted:
		text = " by " + e.By.String()
	case journal.Approval:
		text = " " + e.Approval + " " + e.State
	case journal.Checked:
		text = " " + checkText(e) + ", " + e.Entry
	}
	if e.Trigger != "" {
		text += " " + e.Trigger
	}
	if e.Times > 1 {
		text += fmt.Sprintf(", %d times", e.Times)
	}
	if e.Reason != "" {
		text += ": " + e.Reason.String()
	}
	if !e.Until.IsZero() {
		text += ", until " + e.Until.Local().Format(time.DateTime)
	}
	return foreign.Line(text)
}

// checkText says what a check has come to.
func checkText(e journal.Event) string {
	return foreign.Line(fmt.Sprintf("%s, iteration %d", e.Verdict, e.Iteration))
}

// stopText says what a Stop hook has decided, and about which entries.
func stopText(e journal.Event) string {
	text := string(e.Answer)
	if e.Entry != "" {
		text += " " + e.Entry
	}
	if e.Done != "" {
		text += ", " + e.Done + " done"
	}
	return foreign.Line(text)
}

// follows are the commands in which -f is --follow, as in tail(1) and similar
// programs. There the fleet's file is --file, or -f before the command.
var follows = []string{"events", "logs", "replies"}

// withFollow replaces -f with --follow where it means that.
func withFollow(args []string) []string {
	at := commandAt(args)
	if at == len(args) || !slices.Contains(follows, args[at]) {
		return args
	}
	args = slices.Clone(args)
	for i := at + 1; i < len(args) && args[i] != "--"; i++ {
		if args[i] == "-f" {
			args[i] = "--follow"
		}
	}
	return args
}

// followsFile refuses a file behind an -f that means --follow.
func followsFile(args []string) error {
	at := commandAt(args)
	if at == len(args) || !slices.Contains(follows, args[at]) {
		return nil
	}
	for i := at + 1; i+1 < len(args) && args[i] != "--"; i++ {
		file := args[i+1]
		if is := strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml") || strings.Contains(file, "/"); args[i] != "-f" || !is {
			continue
		}
		said := settings.Quote(file)
		return usagef(fmt.Sprintf("heartbeat --file %s %s; with -f behind it, it follows", said, args[at]), "-f behind %s means --follow, and %s is not an agent", args[at], said)
	}
	return nil
}

// commandAt returns the position of the command, after flags that every command
// takes, or len(args).
func commandAt(args []string) int {
	takes := []string{"-f", "--file", "-o", "--output", "--host", "--log-level", "--log-format", "--heartbeat-ms", "--heartbeat-interval"}
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(takes, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return i
		}
	}
	return len(args)
}

// newest keeps the last few of many.
type newest[T any] struct {
	most int
	all  []T
}

func (n *newest[T]) add(v T) {
	if n.all = append(n.all, v); len(n.all) > n.most {
		n.all = n.all[1:]
	}
}

// gone reports whether the reader of stdout is gone, which is no failure.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) }
