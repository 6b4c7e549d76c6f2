package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/queue"
)

type deadLetterCmd struct {
	Agent  string   `arg:"" optional:"" help:"The agent; the whole fleet when none is named." complete:"agent"`
	Action string   `arg:"" optional:"" complete:"list,show,retry,purge" help:"list, show, retry or purge (list)."`
	IDs    []string `arg:"" optional:"" name:"id" help:"The dead letters: delivery ids, ids or entry ids." complete:"dead-letter"`
	All    bool     `help:"With retry or purge: all of them."`
}

// Help implements kong's HelpProvider.
func (deadLetterCmd) Help() string {
	return `Dead letters are entries that were given up, each with its reason: interrupted,
poison (its attempts are used up), lost (somebody took it out of the inbox), torn,
too-large, over-budget, cancelled or dropped; "heartbeat explain" has more. Show says
what happened and what to type. Retry queues them again, at the end of the queue,
unless their text went with the inbox: those stay, and are named; purge deletes
them for good.
The action may also come before the agent. Without an agent the command applies to
the whole fleet and looks for ids in all queues.

Examples:

    heartbeat dead-letter
    heartbeat dead-letter retry 4f1c02d3a9be
    heartbeat dead-letter triage
    heartbeat dead-letter triage show 4f1c02d3a9be
    heartbeat dead-letter triage retry 4f1c02d3a9be
    heartbeat dead-letter triage purge --all`
}

// dead is one dead letter, with the prompt it held.
type dead struct {
	inbox.DeadEntry
	// DeliveredAt is absent for an entry that never was.
	DeliveredAt time.Time    `json:"delivered_at,omitzero"`
	Prompt      foreign.Text `json:"prompt"`
}

// Named reports whether an id names the dead letter.
func (d dead) Named(id string) bool { return d.DeadEntry.Named(id) }

// deadList are dead letters, oldest first.
type deadList struct {
	Agent   string `json:"agent"`
	Entries []dead `json:"entries"`
	whole   bool   // print them in full
	ours    string
}

func (c deadLetterCmd) run(ctx context.Context, a *app) (result, error) {
	t, err := a.target("dead-letter", append([]string{c.Agent, c.Action}, c.IDs...), []string{"list", "show", "retry", "purge"})
	if err != nil {
		return nil, err
	}
	if c.All && t.action != "retry" && t.action != "purge" {
		return nil, usagef("heartbeat dead-letter --help", "--all goes with retry or purge")
	}
	if err := checkIDs("dead-letter", t.action, t.ids, t.action != "list", c.All); err != nil {
		return nil, err
	}
	if t.action == "list" {
		return listDead(ctx, a, t)
	}
	settle := settling(ctx)
	of := stored[dead]{"dead-letter", "dead letter", func(agent *config.Agent) ([]dead, error) {
		_ = settle(agent)
		list, err := readDead(ctx, a, agent)
		if err != nil {
			return nil, err
		}
		return list.Entries, nil
	}}
	whose, err := of.whose(t)
	if err != nil {
		return nil, err
	}
	switch t.action {
	case "retry":
		f, err := a.knownFleet()
		if err != nil {
			return nil, err
		}
		return c.handle(ctx, t, whose, "queued again", func(ctx context.Context, agent *config.Agent, ids []string, all bool) (int, error) {
			return retry(ctx, f, agent, ids, all)
		})
	case "purge":
		return c.handle(ctx, t, whose, "deleted", func(ctx context.Context, agent *config.Agent, ids []string, all bool) (int, error) {
			if err := a.forgetEnded(ctx, agent); err != nil {
				return 0, err
			}
			return queue.Purge(ctx, agent, ids, all)
		})
	}
	agent, found, err := of.named(t, whose)
	if err != nil {
		return nil, err
	}
	return &deadList{Agent: agent, Entries: found, whole: true, ours: a.ours()}, nil
}

// handle applies an act to the named dead letters of each agent, or with --all to all of
// them.
func (c deadLetterCmd) handle(ctx context.Context, t target, whose map[*config.Agent][]string, did string,
	act func(ctx context.Context, agent *config.Agent, ids []string, all bool) (int, error),
) (result, error) {
	concerned := func(agent *config.Agent) bool {
		return len(whose[agent]) > 0 || c.All && (!t.fleet || hasDead(ctx, agent))
	}
	return each(t, concerned, func(agent *config.Agent) (handled, error) {
		n, err := act(ctx, agent, whose[agent], c.All)
		return done(agent, did, n, err)
	})
}

// hasDead reports whether an agent may have dead letters.
func hasDead(ctx context.Context, a *config.Agent) bool {
	var n inbox.DeadCount
	err := queue.Read(ctx, a, func(q *inbox.Queue) error { return q.CountDead(&n) })
	return err != nil || n.Entries > 0
}

// listDead returns the dead letters of an agent, or of all that have some.
func listDead(ctx context.Context, a *app, t target) (result, error) {
	// What somebody has taken out of the inbox becomes dead letters now. If that cannot
	// be done, the rest is shown all the same.
	settle := settling(ctx)
	if !t.fleet {
		_ = settle(t.agents[0])
		return readDead(ctx, a, t.agents[0])
	}
	all, unread := notEmpty(a, t, "the dead letters", func(agent *config.Agent) (*deadList, error) {
		_ = settle(agent)
		return readDead(ctx, a, agent)
	})
	return deadLists{all, unread}, nil
}

func (l *deadList) empty() bool { return len(l.Entries) == 0 }

// deadLists are the dead letters of the agents that have some.
type deadLists struct {
	Agents []*deadList `json:"agents"`
	unreadLists
}

func (l deadLists) text(p *page) {
	switch {
	case len(l.Agents) > 0:
		l.table(p)
	case len(l.Unread) == 0:
		p.printf("there are no dead letters\n")
	}
	l.unreadLists.text(p, "given up")
}

func (l deadLists) table(p *page) {
	var rows [][]cell
	for _, list := range l.Agents {
		for _, d := range list.Entries {
			rows = append(rows, append([]cell{{text: list.Agent}}, d.row(p)...))
		}
	}
	p.listing([]string{"AGENT", "ID", "REASON", "GIVEN", "AT", "PROMPT"}, rows)
	deadNext(p, l.Agents[0].ours, slices.ContainsFunc(l.Agents, (*deadList).textless))
}

// done is the result of an act on dead letters; some may have succeeded when others
// failed.
func done(a *config.Agent, what string, n int, err error) (handled, error) {
	if isMissing(err) {
		err = nil // there is no queue yet, so there was nothing to do
	}
	if err != nil && n == 0 {
		err = listHint(err, "dead-letter", a)
	}
	if errors.Is(err, inbox.ErrTextGone) {
		err = &failure{status: exitError, hint: fmt.Sprintf("heartbeat send %s \"TEXT\", then heartbeat dead-letter %s purge ID", a.Name, a.Name), err: err}
	}
	return handled{a.Name, what, n}, err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func readDead(ctx context.Context, out *app, a *config.Agent) (*deadList, error) {
	list := &deadList{Agent: a.Name, Entries: []dead{}}
	if out != nil {
		list.ours = out.ours()
	}
	err := queue.Read(ctx, a, func(q *inbox.Queue) error {
		for d, err := range q.DeadLetters() {
			if errors.Is(err, inbox.ErrTooMuch) && out == nil {
				return nil
			}
			if errors.Is(err, inbox.ErrTooMuch) {
				out.warn(err.Error() + "; those behind are not shown")
				return nil
			}
			if err != nil {
				return err
			}
			list.Entries = append(list.Entries, dead{d, d.DeliveredAt, foreign.Text(shownPrompt(d))})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// shownPrompt returns the prompt of a dead letter, or what is kept of it.
func shownPrompt(d inbox.DeadEntry) string {
	switch {
	case d.Excerpt != "" && int64(len(d.Excerpt)) < d.Length:
		return fmt.Sprintf("%s… (%d bytes in all)", d.Excerpt, d.Length)
	case d.Excerpt != "":
		return d.Excerpt
	case d.Reason == inbox.Lost && d.RawLine == "" && d.Length > 0:
		return fmt.Sprintf("(lines of %d bytes in all that others had written; their text is lost)", d.Length)
	case d.Reason == inbox.Lost && d.RawLine == "":
		return "(its text is lost)"
	case d.RawLine == "" && d.Length > 0:
		return fmt.Sprintf("(a line of %d bytes at offset %d of the inbox)", d.Length, d.StartOffset)
	}
	return promptOf(d.RawLine)
}

// promptOf returns the prompt of a queue's line, for display.
func promptOf(line string) string {
	var envelope struct{ Prompt *string }
	var text string
	switch {
	case strings.HasPrefix(line, `{"heartbeat"`) && json.Unmarshal([]byte(line), &envelope) == nil && envelope.Prompt != nil:
		return *envelope.Prompt
	case strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &text) == nil:
		return text
	}
	return line
}

func (l *deadList) text(p *page) {
	switch {
	case len(l.Entries) == 0:
		p.printf("%s has no dead letters\n", l.Agent)
	case l.whole:
		for i, d := range l.Entries {
			if i > 0 {
				p.printf("\n")
			}
			d.whole(p, l.ours, l.Agent)
		}
	default:
		var rows [][]cell
		for _, d := range l.Entries {
			rows = append(rows, d.row(p))
		}
		p.listing([]string{"ID", "REASON", "GIVEN", "AT", "PROMPT"}, rows)
		deadNext(p, l.ours, l.textless())
	}
}

// textless reports whether the text of one of them went with the inbox.
func (l *deadList) textless() bool {
	return slices.ContainsFunc(l.Entries, dead.textless)
}

func (d dead) textless() bool { return d.Reason == inbox.Lost && d.Raw() == nil }

// deadNext says what can be done with dead letters. textless is true if one of them has
// no text any more.
func deadNext(p *page, ours string, textless bool) {
	p.printf("\n")
	p.lines("", fmt.Sprintf("%s dead-letter show ID says why; retry ID queues the prompt again, purge ID deletes it. GIVEN: how often it was handed over.", ours))
	if textless {
		p.lines("", "One whose text is lost cannot be queued again: send the prompt again, or look in a backup of the inbox.")
	}
}

// whole prints a dead letter in full: what happened, and what to type.
func (d dead) whole(p *page, ours, agent string) {
	p.printf("delivery: %s\nid:       %s\nsource:   %s\nreason:   %s, %s\n", d.DeliveryID, d.ID, d.Source, d.reason(), d.At.Local().Format(time.RFC3339))
	given := "never"
	if n := d.handedOver(); n > 0 {
		given = times(n)
		if d.Counted > 0 && d.Counted != d.Attempts {
			given += fmt.Sprintf("; %d of max-attempts were used up", d.Counted)
		}
	}
	if d.Iterations > 0 {
		given += "; " + count(d.Iterations, "iteration")
	}
	p.printf("given:    %s\n", given)
	why := d.Cause
	if w, ok := explain.Find(string(d.Reason)); ok && d.Reason != inbox.Lost {
		if why = w.Means; d.Cause != "" {
			who := " Its session: "
			if d.Iterations > 0 {
				who = " What it came to: "
			}
			why += who + d.Cause
		}
	}
	for i, line := range wrap(why, p.prose()-len("why:      ")) {
		if label := "why:      "; i == 0 {
			p.printf("%s%s\n", label, line)
		} else {
			p.printf("%*s%s\n", len(label), "", line)
		}
	}
	d.lastCheck(p)
	p.printf("\n")
	p.whole("    ", d.Prompt.Raw())
	p.printf("\n")
	switch {
	case d.Retryable():
		p.printf("    %s dead-letter retry %s    # queues it again\n", ours, d.name())
	case d.textless():
		p.lines("", "Nobody has its text any more, so it cannot be queued again. Send the prompt again, or append its line from a backup of the inbox:")
		p.printf("\n    %s send %s \"TEXT\"\n", ours, agent)
	default:
		p.printf("    %s send %s \"TEXT\"    # its text is not known whole: it cannot be queued again\n", ours, agent)
	}
	p.printf("    %s dead-letter purge %s    # deletes it\n", ours, d.name())
}

// lastCheck is what the last check of its work said.
func (d dead) lastCheck(p *page) {
	switch {
	case d.Output != "":
		p.printf("\nthe last check said:\n\n")
		p.whole("    ", d.Output)
		p.printf("\nthe prompt:\n")
	case d.Iterations > 0:
		p.printf("\nthe last check said nothing; the prompt:\n")
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// handedOver is how often it was: an iteration is handed over, too.
func (d dead) handedOver() int { return max(d.Attempts, d.Iterations) }

func (d dead) row(p *page) []cell {
	return []cell{
		{text: d.name()},
		{d.reason(), p.yellow},
		{text: strconv.Itoa(d.handedOver())},
		{text: d.At.Local().Format("2006-01-02 15:04")},
		{text: d.Prompt.String()},
	}
}

// name returns the id to type. Lines that were appended by hand have no id of their
// own, heartbeat-rs's records only an entry id.
func (d dead) name() string { return handle(d.ID, cmp.Or(d.DeliveryID, d.EntryID)) }

func (d dead) reason() string {
	if d.Reason == "" {
		return "unknown"
	}
	return string(d.Reason)
}
