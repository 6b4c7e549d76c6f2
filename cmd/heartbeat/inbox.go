package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

type inboxCmd struct {
	Agent  string   `arg:"" optional:"" help:"The agent; the whole fleet when none is named." complete:"agent"`
	Action string   `arg:"" optional:"" complete:"list,show,drop" help:"list, show or drop (list)."`
	IDs    []string `arg:"" optional:"" name:"id" help:"The entries to show or drop: ids or delivery ids." complete:"entry"`
	Limit  int      `placeholder:"N" default:"50" help:"With list: how many entries to list at most (${default})."`
}

// Help implements kong's HelpProvider.
func (inboxCmd) Help() string {
	return `Lists what is in flight, set aside and queued, shows whole entries, or drops queued ones.
A dropped entry becomes a dead letter. An entry in flight cannot be dropped.
The action may also come before the agent. Without an agent the command applies to
the whole fleet and looks for ids in all queues.

Examples:

    heartbeat inbox
    heartbeat inbox drop ticket-4711
    heartbeat inbox triage
    heartbeat inbox triage show 4f1c02d3a9be
    heartbeat inbox triage drop 4f1c02d3a9be ticket-4711`
}

// queued is one entry of a queue.
type queued struct {
	State      string       `json:"state"` // queued, or the state in flight
	ID         string       `json:"id"`
	DeliveryID string       `json:"delivery_id"`
	Source     string       `json:"source"`
	Urgent     bool         `json:"urgent"`
	Attempt    int          `json:"attempt"`
	Delivered  time.Time    `json:"delivered_at,omitzero"`
	Prompt     foreign.Text `json:"prompt"`
	aside      bool         // it waits outside of the queue
}

// queueList is the beginning of a queue.
type queueList struct {
	Agent   string   `json:"agent"`
	Entries []queued `json:"entries"`
	More    bool     `json:"more"` // there are more entries than these
}

// queueEntries are entries in full.
type queueEntries struct {
	Agent   string   `json:"agent"`
	Entries []queued `json:"entries"`
}

func (c inboxCmd) run(ctx context.Context, a *app) (result, error) {
	t, err := a.target("inbox", append([]string{c.Agent, c.Action}, c.IDs...), []string{"list", "show", "drop"})
	if err != nil {
		return nil, err
	}
	if err := checkIDs("inbox", t.action, t.ids, t.action != "list", false); err != nil {
		return nil, err
	}
	if c.Limit < 1 {
		return nil, usagef("heartbeat inbox --help", "--limit is below 1")
	}
	if t.action == "list" {
		return listQueues(ctx, a, t, c.Limit)
	}
	settle := settling(ctx)
	of := stored[queued]{"inbox", "entry", func(agent *config.Agent) ([]queued, error) {
		list, err := readQueue(settle, agent, wholeList)
		if err != nil {
			return nil, err
		}
		return list.Entries, nil
	}}
	whose, err := of.whose(t)
	if err != nil {
		return nil, err
	}
	if t.action == "drop" {
		concerned := func(agent *config.Agent) bool { return len(whose[agent]) > 0 }
		return each(t, concerned, func(agent *config.Agent) (handled, error) {
			n, err := queue.Drop(ctx, agent, whose[agent])
			if err == nil {
				err = a.forgetEnded(ctx, agent)
			}
			return handled{agent.Name, "dropped", n}, listHint(err, "inbox", agent)
		})
	}
	agent, found, err := of.named(t, whose)
	if err != nil {
		return nil, err
	}
	return queueEntries{agent, found}, nil
}

// listQueues returns the beginning of a queue, or of all.
func listQueues(ctx context.Context, a *app, t target, limit int) (result, error) {
	if !t.fleet {
		list, err := readQueue(settling(ctx), t.agents[0], limit)
		return list, answerHint(err, a.ours(), t.agents[0])
	}
	settle := settling(ctx)
	all, unread := notEmpty(a, t, "the queue", func(agent *config.Agent) (*queueList, error) {
		return readQueue(settle, agent, limit)
	})
	return queueLists{all, unread}, nil
}

func (l *queueList) empty() bool { return len(l.Entries) == 0 }

// queueLists are the beginnings of the queues that hold something.
type queueLists struct {
	Agents []*queueList `json:"agents"`
	unreadLists
}

func (l queueLists) text(p *page) {
	switch {
	case len(l.Agents) > 0:
		l.table(p)
	case len(l.Unread) == 0:
		p.printf("nothing is queued\n")
	}
	l.unreadLists.text(p, "queued")
}

func (l queueLists) table(p *page) {
	var rows [][]cell
	for _, q := range l.Agents {
		for _, e := range q.Entries {
			rows = append(rows, plain(q.Agent, e.name(), e.State, e.origin(q.Agent), e.Prompt.String()))
		}
	}
	p.listing([]string{"AGENT", "ID", "STATE", "SOURCE", "PROMPT"}, rows)
	for _, q := range l.Agents {
		if q.More {
			p.saidf("and more of %s; --limit N lists more of them", q.Agent)
		}
	}
}

// Named reports whether an id names the entry.
func (e queued) Named(id string) bool { return e.ID == id || e.DeliveryID == id }

// wholeList is more entries than a queue has.
const wholeList = 1 << 30

// checkIDs checks that ids are given where an action needs them and only there.
func checkIDs(command, action string, ids []string, needs, all bool) error {
	usage := fmt.Sprintf("heartbeat %s AGENT %s", command, action)
	switch {
	case len(ids) > 0 && (!needs || all):
		return usagef(usage, "%s takes no ids here", action)
	case needs && !all && len(ids) == 0:
		return usagef(usage+" ID", "%s needs an id", action)
	}
	return nil
}

// listHint adds where to find the ids.
func listHint(err error, command string, a *config.Agent) error {
	if !errors.Is(err, inbox.ErrNotFound) {
		return err
	}
	return &failure{status: exitError, hint: fmt.Sprintf("heartbeat %s %s list", command, a.Name), err: err}
}

// answerHint adds to the error of a queue that asks a person how to answer.
func answerHint(err error, ours string, a *config.Agent) error {
	if !errors.Is(err, inbox.ErrNeedsOperator) {
		return err
	}
	return &failure{status: exitError, hint: ours + " answer " + a.Name, err: fmt.Errorf("cannot tell what is queued for agent %q: %w", a.Name, err)}
}

// readQueue returns the beginning of a queue. With a list and an error, what the error
// names may hold more.
func readQueue(settle func(*config.Agent) error, a *config.Agent, limit int) (*queueList, error) {
	list := &queueList{Agent: a.Name, Entries: []queued{}}
	err := settle(a)
	if isMissing(err) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	q, err := queue.Open(a)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	flight, err := q.Peek()
	if err != nil {
		return nil, err
	}
	if flight != nil {
		list.Entries = append(list.Entries, inFlight(flight))
	}
	aside, err := q.Waiting()
	if err != nil {
		return nil, err
	}
	for i := range aside {
		list.Entries = append(list.Entries, waitsAside(&aside[i]))
	}
	entries, err := q.List(limit + 1)
	if err != nil {
		return nil, err
	}
	list.More = len(entries) > limit
	for _, e := range entries[:min(len(entries), limit)] {
		list.Entries = append(list.Entries, queued{
			State: "queued", ID: e.ID, DeliveryID: e.DeliveryID, Source: e.Source, Urgent: e.Urgent, Prompt: foreign.Text(e.Prompt),
		})
	}
	return list, hidden(q.Obstacles(), inbox.HidesQueue)
}

// hidden is why something of a queue cannot be told, or nil.
func hidden(all []inbox.Obstacle, of ...inbox.Hidden) error {
	var errs []error
	for _, o := range all {
		if slices.Contains(of, o.Hides) {
			errs = append(errs, o.Err)
		}
	}
	return errors.Join(errs...)
}

func inFlight(f *inbox.InFlight) queued {
	return queued{
		State: string(f.State), ID: f.ID, DeliveryID: f.DeliveryID, Source: f.Source, Urgent: f.Urgent, Attempt: f.Attempt,
		Delivered: f.DeliveredAt, Prompt: foreign.Text(promptOf(f.RawLine)),
	}
}

// waitsAside is an entry that is set aside.
func waitsAside(f *inbox.InFlight) queued {
	e := inFlight(f)
	e.aside = true
	if e.State = "waits for approval"; f.Returns() {
		e.State = "answered"
	}
	return e
}

// handleColumns is how long an id may be to be shown in a list.
const handleColumns = 16

// anyID stands for the id of an entry that has none that a person can type.
const anyID = "ID"

// handle returns the id to type for an entry: its own, or if that is long, missing or not
// typable the one that was made for its delivery.
func handle(id, delivery string) string {
	if delivery != "" && len(id) > handleColumns {
		id = ""
	}
	return cmp.Or(inbox.Handle(id, delivery), anyID)
}

func (l *queueList) text(p *page) {
	if len(l.Entries) == 0 {
		p.printf("nothing is queued for %s\n", l.Agent)
		return
	}
	var rows [][]cell
	for _, e := range l.Entries {
		rows = append(rows, plain(e.name(), e.State, e.origin(l.Agent), e.Prompt.String()))
	}
	p.listing([]string{"ID", "STATE", "SOURCE", "PROMPT"}, rows)
	if l.More {
		p.printf("and more; --limit N lists more of them\n")
	}
}

// name returns the id to type. Lines that were appended by hand have only a
// delivery id.
func (e queued) name() string { return handle(e.ID, e.DeliveryID) }

// origin says where it comes from, and that it is urgent.
func (e queued) origin(agent string) string {
	return withUrgent(origin(agent, e.Source), e.Urgent)
}

func (q queueEntries) text(p *page) {
	for i, e := range q.Entries {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("delivery: %s\nid:       %s\nsource:   %s\nstate:    %s\n", e.DeliveryID, e.ID, e.Source, e.State)
		if e.Urgent {
			p.printf("urgent:   yes\n")
		}
		if e.Attempt > 0 {
			p.printf("attempt:  %s, since %s\n", strconv.Itoa(e.Attempt), e.Delivered.Local().Format(time.RFC3339))
		}
		p.printf("\n")
		p.whole("    ", e.Prompt.Raw())
	}
}
