package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"heartbeat/orchestrator/approval"
)

// Approvals has the requests of agents, and answers them.
type Approvals interface {
	// Waiting are those without an answer, Done the last ones with one, oldest first.
	Waiting() ([]approval.Request, error)
	Done() ([]approval.Request, error)
	// Find returns one; approval.ErrNone: there is none.
	Find(id string) (approval.Request, error)
	// Answer files a person's answer; approval.ErrAnswered: the returned request has an
	// answer already.
	Answer(ctx context.Context, id string, a approval.Answer) (approval.Request, error)
}

// mostDone is how many answered requests are listed, mostWhole how many of those that wait are
// in the list as on their own pages: whole, with what answers them. longestWhole is how many
// bytes there may be to read beside the question.
const (
	mostDone     = 20
	mostWhole    = 20
	longestWhole = 4 << 10
)

// approvalURL is the address of a request's page.
func approvalURL(id string) string { return Root + "approvals/" + url.PathEscape(id) }

// asked is a request, and whether the viewer may answer it.
type asked struct {
	approval.Request
	Acts bool
	// Listed is true in the list of all requests, where its elements need ids of their own.
	Listed bool
}

// Note is the id of the field for a note.
func (a asked) Note() string {
	if a.Listed {
		return "approval-note-" + a.ID
	}
	return "approval-note"
}

// Answerable reports whether there are buttons to answer it.
func (a asked) Answerable() bool { return a.Acts && a.Waits() && ours(a.ID) }

// Grave reports whether a yes destroys or runs something, according to the agent. Then the list of
// troubles has no buttons for it, only the way to its page.
func (a asked) Grave() bool { return a.Category == "destroy" || a.Category == "execute" }

// approvals is the page of all requests.
func (p *Page) approvals(_ context.Context, q ask) (Sheet, error) {
	s := Sheet{Title: "Approvals", Crumb: "Approvals"}
	waiting, unread := p.opt.Approvals.Waiting()
	done, err := p.opt.Approvals.Done()
	problem := ""
	if err = errors.Join(unread, err); err != nil {
		problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	slices.Reverse(done)
	d := drawer{page: p}
	list := Part{ID: "approvals", KidsTag: "div", KidsClass: "asked"}
	list.Kids = append(list.Kids, d.part(Part{ID: "approvals-head", Tag: "div", Polite: true}, "approvals", struct {
		Waiting int
		Problem string
	}{len(waiting), problem}))
	for i, r := range waiting {
		a := asked{r, q.Acts, true}
		if i < mostWhole && len(r.Payload) <= longestWhole {
			list.Kids = append(list.Kids, d.whole(a))
		} else {
			list.Kids = append(list.Kids, d.part(a.part(), "approval-link", a))
		}
	}
	s.Parts = []Part{list}
	if len(done) > 0 {
		s.Parts = append(s.Parts, d.part(Part{ID: "approvals-done"}, "approvals-done", done[:min(len(done), mostDone)]))
	}
	return s, d.err
}

// part is the element of a request in the list.
func (a asked) part() Part { return Part{ID: partID("asked", a.ID)} }

// whole draws a request in the list as its own page has it.
func (d *drawer) whole(a asked) Part {
	part := a.part()
	part.KidsTag = "div"
	if a.Answerable() {
		part.Kids = []Part{d.part(Part{ID: partID("approval-answer", a.ID), Still: true}, "approval-answer", a)}
	}
	return d.part(part, "approval", a)
}

// approval is the page of one request: what is asked, what differs in the agent's
// directory, and the answer.
func (p *Page) approval(ctx context.Context, q ask) (Sheet, error) {
	r, err := p.opt.Approvals.Find(q.Path("id"))
	if errors.Is(err, approval.ErrNone) {
		return Sheet{}, ErrNotFound
	}
	if err != nil {
		return Sheet{}, err
	}
	s := Sheet{Title: "Approval for " + r.Agent, Crumb: "Approval"}
	a := asked{Request: r, Acts: q.Acts}
	d := drawer{page: p}
	s.Parts = append(s.Parts, d.part(Part{ID: "approval", Polite: true}, "approval", a))
	if a.Answerable() {
		s.Parts = append(s.Parts, d.part(Part{ID: "approval-answer", Still: true}, "approval-answer", a))
	}
	if d.err != nil {
		return s, d.err
	}
	if r.Waits() {
		part, err := p.difference(ctx, r.Agent)
		if err != nil {
			return s, err
		}
		s.Parts = append(s.Parts, part)
	}
	return s, nil
}

// answer answers an agent's request.
func (p *Page) answer(ctx context.Context, o order, to approval.State) (string, error) {
	agent, id := o.Args[0], o.Args[1]
	r, err := p.opt.Approvals.Find(id)
	if err == nil && r.Agent != agent {
		err = approval.ErrNone
	}
	if err != nil {
		return "", err
	}
	a := approval.ByPerson(to, o.Text()).Named(o.By)
	switch r, err = p.opt.Approvals.Answer(ctx, id, a); {
	case errors.Is(err, approval.ErrAnswered) && !r.AnsweredAt.IsZero():
		return "", fmt.Errorf("%w: %s, %s", approval.ErrAnswered, r.Answered(), moment(r.AnsweredAt, p.opt.Now()))
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s: %s", agent, to), nil
}
