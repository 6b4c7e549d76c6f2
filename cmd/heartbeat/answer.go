package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

type answerCmd struct {
	Agent  string `arg:"" help:"The agent." complete:"agent"`
	Answer string `arg:"" optional:"" complete:"start,cursor,in-flight,last,end" help:"Where the queue continues: one of the answers that are shown, or a byte offset."`
}

// Help implements kong's HelpProvider.
func (answerCmd) Help() string {
	return `Tells an agent's queue where to continue. When an inbox was replaced or edited in
a way that heartbeat cannot explain, continuing could lose or repeat prompts, so
nothing is handed over until a person decides. Without an answer this shows what
happened and, for each answer, which prompts are handed over, repeated and lost,
with the ids of those that are queued and not in the inbox any more.
With an answer the queue continues there, and a running scheduler continues with
the agent.

Examples:

    heartbeat answer triage
    heartbeat answer triage last
    heartbeat answer triage 4711      # a byte offset of the inbox`
}

// question is what a queue asks; nothing if it asks nothing.
type question struct {
	Agent    string          `json:"agent"`
	Question *inbox.Question `json:"question"`
	ours     string
}

// answered is the answer that was given.
type answered struct {
	Agent  string       `json:"agent"`
	Answer inbox.Answer `json:"answer"`
	// Resumed is true if a running scheduler continues with the agent.
	Resumed bool `json:"resumed"`
	// Paused is true if one runs it, but the agent stays paused.
	Paused bool `json:"paused"`
	ours   string
}

func (c answerCmd) run(ctx context.Context, a *app) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	agent, err := a.agent(c.Agent)
	if err != nil {
		return nil, err
	}
	if c.Answer == "" {
		asked, err := queue.Question(ctx, agent)
		return question{agent.Name, asked, a.ours()}, err
	}
	given, err := queue.Answer(ctx, agent, c.Answer)
	if err != nil {
		return nil, err
	}
	if err := movedOn(ctx, a.known, agent); err != nil {
		a.warn(err.Error())
	}
	if err := a.noteAnswer(ctx, a.known, agent.Name, toldQueue(given, "a person")); err != nil {
		a.warn("the answer is not in the journal: " + err.Error())
	}
	res := answered{Agent: agent.Name, Answer: given, ours: a.ours()}
	if res.Paused, err = a.goOn(ctx, agent.Name); err != nil && !errors.Is(err, control.ErrNotRunning) {
		return res, fmt.Errorf("the answer is recorded, but the scheduler cannot be notified: %w", err)
	}
	res.Resumed = err == nil && !res.Paused
	return res, nil
}

// toldQueue is what the journal says of an answer to a queue.
func toldQueue(given inbox.Answer, by string) string {
	return fmt.Sprintf("%s says: %s; hands over %d, repeats %d, loses %d", by, given.Name, given.Given, given.Repeats, given.Loses+given.Missing)
}

// noteAnswer has it written down what the queue of an agent was told, for a fleet that has run.
func (a *app) noteAnswer(ctx context.Context, f *config.Fleet, agent, text string) error {
	client, err := a.clientOf(f)
	if err == nil {
		err = client.Answered(ctx, agent, text)
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	dir, err := owner.StateDir(f)
	if err != nil || !adopt.Remembers(dir) {
		return err
	}
	return adopt.Note(ctx, dir, journal.Event{At: time.Now(), Agent: agent, Kind: journal.Answered, Reason: foreign.Text(text)})
}

// goOn makes a running scheduler continue with an agent, unless the agent is
// paused: an answer does not undo what somebody else wants.
func (a *app) goOn(ctx context.Context, agent string) (paused bool, err error) {
	client, err := a.clientOf(a.known)
	if err != nil {
		return false, err
	}
	live, err := client.Status(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(live.Agents, func(s status.AgentState) bool { return s.Agent == agent && !s.Paused.IsZero() }) {
		return true, nil
	}
	_, err = client.Resume(ctx, agent)
	return false, err
}

func (q question) text(p *page) {
	if q.Question == nil {
		p.saidf("the queue of %s is fine: there is nothing to answer", q.Agent)
		return
	}
	p.lines("", q.Question.Why)
	if f := q.Question.InFlight; f != nil {
		p.saidf("A session had this prompt (%s): %s", string(f.State), firstWords(promptOf(f.RawLine)))
	}
	q.missing(p)
	p.printf("\nWhere should it continue?\n")
	for _, a := range q.Question.Answers {
		p.printf("\n")
		p.coloured(p.cyan, a.Name)
		p.printf(" %s\n", where(a.Name))
		for _, line := range meaning(a) {
			p.lines("    ", line)
		}
	}
	p.printf("\n")
	p.lines("", "The replies in outbox.jsonl and the dead letters show what is done.")
	p.printf("\n    %s answer %s ANSWER\n", q.ours, q.Agent)
}

// where says where an answer continues.
func where(name string) string {
	switch name, _, _ := strings.Cut(name, "-"); name {
	case "start":
		return "(from the first prompt on)"
	case "end":
		return "(behind the last prompt: with the next one that comes)"
	case "cursor":
		return "(where the queue was)"
	case "in":
		return "(from the prompt on that a session had)"
	case "last":
		return "(after the prompt that was done last)"
	}
	return ""
}

// meaning says what an answer hands over, repeats and loses.
func meaning(a inbox.Answer) []string {
	given := "hands over nothing"
	if a.Given > 0 {
		given = "hands over " + count(a.Given, "prompt") + ", from this on: " + firstWords(a.Next)
	}
	lines := []string{given}
	if a.Repeats > 0 {
		lines = append(lines, "repeats "+some(a.Repeats, "that was done", "that were done", a.RepeatedFirst))
	}
	if a.Loses > 0 {
		lines = append(lines, "loses "+some(a.Loses, "that was not done", "that were not done", a.LostFirst))
	}
	if a.Missing > 0 {
		lines = append(lines, "loses "+vanished(a))
	}
	switch {
	case a.MissingUnknown:
		lines = append(lines, "may lose prompts that are no longer in the inbox: that could not be told")
	case a.Repeats+a.Loses+a.Missing == 0:
		lines = append(lines, "repeats and loses nothing")
	}
	return lines
}

// vanished is what an answer loses because the inbox has it no more.
func vanished(a inbox.Answer) string {
	text := strconv.Itoa(a.Missing) + " that is not in the inbox any more"
	if a.Missing > 1 {
		text = strconv.Itoa(a.Missing) + " that are not in the inbox any more"
	}
	if len(a.MissingIDs) > 0 {
		text += ": " + foreign.Line(session.NamesOf(a.MissingIDs, a.Missing))
	}
	return text
}

// missing says of the prompts that are not in the inbox any more which they are.
func (q question) missing(p *page) {
	if why := q.Question.MissingUnknown; why != "" {
		p.lines("", "It cannot be told which queued prompts are not in the inbox any more: "+why+". Whatever you answer, each of them becomes a dead letter, lost.")
		return
	}
	n := 0
	for _, a := range q.Question.Answers {
		n = max(n, a.Missing)
	}
	if n == 0 {
		return
	}
	p.lines("", count(n, "prompt")+" that "+were(n)+" queued and not done "+are(n)+" not in the inbox any more. Whatever you answer, each becomes a dead letter, lost:")
	for _, gone := range q.Question.Missing {
		id, text := cmp.Or(foreign.Line(gone.ID), "(no id)"), "its text is gone"
		if gone.Prompt != "" {
			text = firstWords(gone.Prompt) + ", which dead-letter retry can queue again"
		}
		p.lines("    ", id+": "+text)
	}
	if more := n - len(q.Question.Missing); more > 0 {
		p.printf("    and %d more\n", more)
	}
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// some is a number of prompts, what they are, and the first one.
func some(n int, one, many, first string) string {
	if n == 1 {
		return "1 " + one + ": " + firstWords(first)
	}
	return fmt.Sprintf("%d %s, the first one: %s", n, many, firstWords(first))
}

// firstWords are those of a prompt, quoted.
func firstWords(prompt string) string {
	return `"` + shorten(foreign.Line(prompt), recoveredColumns) + `"`
}

func (r answered) text(p *page) {
	p.saidf("%s: its queue continues", r.Agent)
	for _, line := range meaning(r.Answer) {
		p.lines("    ", line)
	}
	switch {
	case r.Paused:
		p.saidf("It is paused: %s resume %s", r.ours, r.Agent)
	case !r.Resumed:
		p.printf("No scheduler runs it now.\n")
	}
}
