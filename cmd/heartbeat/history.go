package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

type historyCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them when none is named." complete:"agent"`
	Stops  bool     `help:"Also show what Stop hooks decided, turn by turn, and each session."`
	Each   bool     `help:"Show each session, even if many of an agent ended the same way."`
	Since  since    `placeholder:"TIME" help:"From this time on: 2h, 1w, 09:30, 2026-03-01."`
	Count  *int     `short:"n" placeholder:"N" help:"How many lines, the newest (20; all with --since)."`
}

// Help implements kong's HelpProvider.
func (historyCmd) Help() string {
	return `Shows past sessions and dead letters, newest last: when, how long, how many prompts were
done, and how it ended. With several agents, sessions of one agent in a row that ended
the same way share a line: how many, what they did together, and the id of the last one.
Name one agent, or use --each, to show every session. --stops adds a line at the end of
each turn: which prompt was done, and what the Stop hook did (heartbeat explain stop).
The checks of prompts with until are shown, too (heartbeat explain check).

Examples:

    heartbeat history
    heartbeat history triage --stops
    heartbeat history --since 24h
    heartbeat history triage -n 100 -o json`
}

// happened is a session that ended, a turn that was over, or an entry that was given up.
type happened struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent"`
	Kind  string    `json:"kind"` // session, stop, check, dead-letter
	// DurationMS belongs to a session and to a check, Acknowledged to a session.
	DurationMS   int64        `json:"duration_ms,omitempty"`
	Acknowledged int          `json:"acknowledged"`
	Why          foreign.Text `json:"why"`
	// ID is the session's, the dead letter's, or that of the entry which a Stop hook has
	// handed over, or which was checked.
	ID string `json:"id"`
	// Times is how many sessions it stands for, if more than one.
	Times int `json:"times,omitempty"`
	// short is the ID as a table shows it.
	short string
}

// pastEvents are the newest of them.
type pastEvents struct {
	Events []happened `json:"events"`
}

func (c historyCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 1 {
		return nil, usagef("heartbeat history --help", "-n is below 1")
	}
	f, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	past := pastSessions{each: c.Each || c.Stops || len(agents) == 1 || a.Output == "json", last: map[string]*happened{}}
	most := c.Since.most(c.Count, 20)
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, err
		}
		switch {
		case e.At.Before(c.Since.Time):
		case len(c.Agents) > 0 && !slices.Contains(c.Agents, e.Agent):
		case e.Kind == journal.Ended:
			past.add(sessionOf(e), most)
		case e.Kind == journal.Stopped && c.Stops:
			past.add(stopOf(e), most)
		case e.Kind == journal.Checked:
			past.add(checkOf(e), most)
		}
	}
	all := past.list()
	for _, agent := range agents {
		dead, err := deadOf(ctx, agent)
		if err != nil {
			a.warn(fmt.Sprintf("cannot read the dead letters of %s: %v", agent.Name, err))
		}
		if err := hidden(queue.Obstacles(agent), inbox.HidesQueue, inbox.HidesReplies); err != nil {
			a.warn(fmt.Sprintf("%s: %v", agent.Name, err))
		}
		all = append(all, slices.DeleteFunc(dead, func(h happened) bool { return h.At.Before(c.Since.Time) })...)
	}
	slices.SortStableFunc(all, func(x, y happened) int { return x.At.Compare(y.At) })
	return pastEvents{all[max(0, len(all)-most):]}, nil
}

// pastSessions are sessions in the order in which they ended. Unless each is to be
// shown, consecutive ones of an agent that ended the same way are one.
type pastSessions struct {
	each bool
	all  []*happened
	last map[string]*happened // :: agent → its last one
}

func (p *pastSessions) add(h happened, most int) {
	if before := p.last[h.Agent]; !p.each && before != nil && before.Why == h.Why {
		before.Times = max(before.Times, 1) + 1
		before.At, before.ID, before.short = h.At, h.ID, h.short
		before.DurationMS, before.Acknowledged = before.DurationMS+h.DurationMS, before.Acknowledged+h.Acknowledged
		return
	}
	p.all = append(p.all, &h)
	p.last[h.Agent] = &h
	if p.each && len(p.all) > 2*most {
		p.all = slices.Clone(p.all[len(p.all)-most:])
	}
}

func (p *pastSessions) list() []happened {
	all := make([]happened, len(p.all))
	for i, h := range p.all {
		all[i] = *h
	}
	return all
}

func sessionOf(e journal.Event) happened {
	h := happened{At: e.At, Agent: e.Agent, Kind: "session", Acknowledged: e.Acknowledged, Why: e.Reason, ID: e.Session}
	h.short, _, _ = strings.Cut(e.Session, "-")
	if !e.Started.IsZero() {
		h.DurationMS = e.At.Sub(e.Started).Milliseconds()
	}
	return h
}

// checkOf is the check of a prompt's work.
func checkOf(e journal.Event) happened {
	h := happened{At: e.At, Agent: e.Agent, Kind: "check", ID: e.Entry, short: shorten(foreign.Line(e.Entry), handleColumns), Why: foreign.Text(checkText(e)), DurationMS: e.TookMS}
	if e.TookMS == 0 && !e.Started.IsZero() {
		h.DurationMS = e.At.Sub(e.Started).Milliseconds()
	}
	for _, more := range []foreign.Text{e.Reason, e.Detail} {
		if more != "" {
			h.Why += ": " + more
		}
	}
	return h
}

func stopOf(e journal.Event) happened {
	h := happened{At: e.At, Agent: e.Agent, Kind: "stop", ID: e.Entry, Why: foreign.Text(stopText(e))}
	if h.short = shorten(foreign.Line(e.Entry), handleColumns); e.Done != "" {
		h.Acknowledged = 1
	}
	if e.Reason != "" {
		h.Why += ": " + e.Reason
	}
	return h
}

func deadOf(ctx context.Context, a *config.Agent) ([]happened, error) {
	var all []happened
	err := queue.Read(ctx, a, func(q *inbox.Queue) error {
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			all = append(all, happened{
				At: d.At, Agent: a.Name, Kind: "dead-letter", Why: foreign.Text(d.Reason),
				ID: cmp.Or(d.ID, d.DeliveryID), short: handle(d.ID, d.DeliveryID),
			})
		}
		return nil
	})
	return all, err
}

func (h pastEvents) text(p *page) {
	if len(h.Events) == 0 {
		p.printf("nothing has happened yet\n")
		return
	}
	var rows [][]cell
	for _, e := range h.Events {
		took, done := "-", "-"
		if e.Kind == "session" {
			done = strconv.Itoa(e.Acknowledged)
		}
		if e.DurationMS > 0 {
			took = status.Span(time.Duration(e.DurationMS) * time.Millisecond)
		}
		if e.Kind == "stop" && e.Acknowledged > 0 {
			done = strconv.Itoa(e.Acknowledged)
		}
		what := cell{text: e.Kind}
		if e.Times > 1 {
			what.text = fmt.Sprintf("%d %ss", e.Times, e.Kind)
		}
		if e.Kind == "dead-letter" {
			what.colour = p.red
		}
		rows = append(rows, []cell{
			{text: e.At.Local().Format(time.DateTime)},
			{text: e.Agent},
			what,
			{text: took},
			{text: done},
			{text: e.short},
			{text: e.Why.String()},
		})
	}
	p.table([]string{"TIME", "AGENT", "WHAT", "TOOK", "DONE", "ID", "WHY"}, rows)
}
