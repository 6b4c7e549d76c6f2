package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/queue"
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
happened and what each answer means. With an answer the queue continues there, and
a running scheduler continues with the agent.

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
	res := answered{Agent: agent.Name, Answer: given, ours: a.ours()}
	if res.Paused, err = a.goOn(ctx, agent.Name); err != nil && !errors.Is(err, control.ErrNotRunning) {
		return res, fmt.Errorf("the answer is recorded, but the scheduler cannot be told: %w", err)
	}
	res.Resumed = err == nil && !res.Paused
	return res, nil
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
		p.printf("the queue of %s asks nothing; it knows where to continue\n", q.Agent)
		return
	}
	p.printf("%s\n", q.Question.Why)
	if f := q.Question.InFlight; f != nil {
		p.printf("A session had this entry (%s): %s\n", string(f.State), shorten(foreign.Line(promptOf(f.RawLine)), recoveredColumns))
	}
	p.printf("\nWhere should it continue?\n\n")
	var rows [][]cell
	for _, a := range q.Question.Answers {
		next := "nothing: all of it counts as done"
		if a.Given > 0 {
			next = a.Next
		}
		rows = append(rows, plain(a.Name, strconv.FormatInt(a.Offset, 10), strconv.Itoa(a.Done), strconv.Itoa(a.Given), next))
	}
	p.listing([]string{"ANSWER", "OFFSET", "LEFT OUT", "HANDED OVER", "BEGINNING WITH"}, rows)
	p.printf("\nPrompts that are left out count as done: one that was not done is lost. Prompts\nthat are handed over are worked on, even if they were done before.\n\n    %s answer %s ANSWER\n", q.ours, q.Agent)
}

func (r answered) text(p *page) {
	p.printf("%s: the queue continues at %s (offset %s)\n", r.Agent, r.Answer.Name, strconv.FormatInt(r.Answer.Offset, 10))
	switch {
	case r.Paused:
		p.printf("It is paused: %s resume %s\n", r.ours, r.Agent)
	case !r.Resumed:
		p.printf("No scheduler runs it now.\n")
	}
}
