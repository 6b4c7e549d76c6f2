package page

import (
	"context"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
)

// Record is the outcome of an agent's prompts and sessions, newest first.
type Record struct {
	Replies []Reply
	Ends    []End
	Note    string
}

// Reply is an agent's last message about a prompt.
type Reply struct {
	At, Begun time.Time
	ID        foreign.Text // that its sender gave it, or ""
	Source    foreign.Text
	Attempt   int
	Text      foreign.Text
	Cut       bool
	NotProven bool // the prompt has to be proven, and is not
}

// End is how a session ended, or the check of a prompt's work.
type End struct {
	Check bool
	At    time.Time
	Took  time.Duration
	Done  int
	Why   foreign.Text
	// Entry is the delivery that was checked, Of its prompt, as far as that is known.
	Entry string
	Of    foreign.Text
}

// record is the page of an agent's Record.
func (p *Page) record(ctx context.Context, q ask) (Sheet, error) {
	s, v, err := p.head(ctx, q, "record")
	if err != nil {
		return s, err
	}
	parts, err := p.records.get(ctx, v.Agent.Agent, func() ([]Part, error) {
		r, err := p.opt.Agents.Record(ctx, v.Agent.Agent)
		d := drawer{page: p, err: err}
		return []Part{d.part(Part{ID: "agent-replies"}, "agent-replies", r), d.part(Part{ID: "agent-ends"}, "agent-ends", r)}, d.err
	})
	s.Parts = append(s.Parts, parts...)
	return s, err
}

// Spent is how long a reply took, in words, or "".
func (r Reply) Spent() string {
	if r.Begun.IsZero() {
		return ""
	}
	return status.Span(r.At.Sub(r.Begun))
}

// Lasted is how long a session took, in words.
func (e End) Lasted() string {
	if e.Took <= 0 {
		return "-"
	}
	return status.Span(e.Took)
}
