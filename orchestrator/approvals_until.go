package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/proving"
)

// approvers are the people who are asked about what has passed its check.
type approvers struct{ s *Scheduler }

var _ proving.Approvals = approvers{}

// Of implements proving.Approvals: all that until.approve names are asked at once, and
// only if each is approved it is a yes.
func (a approvers) Of(q proving.Ask) (proving.Say, error) {
	if len(q.Until.Approve) == 0 {
		return proving.Say{Answer: proving.NotAsked}, nil
	}
	all, err := a.s.approvals.ledger.For(q.Key, q.Delivery, q.About)
	if err != nil {
		return proving.Say{}, err
	}
	for _, name := range q.Until.Approve {
		switch {
		case together(all).Answer == proving.Rejected: // nobody else is asked
		case !slices.ContainsFunc(all, func(r approval.Request) bool { return r.Name == name }):
			r, err := a.ask(q, name)
			if err != nil {
				return proving.Say{}, err
			}
			all = append(all, r)
		}
	}
	say := together(all)
	if say.Answer == proving.Rejected && slices.ContainsFunc(all, approval.Request.Waits) {
		a.asksNoMore(all)
	}
	return say, nil
}

// asksNoMore withdraws those of some requests that wait: they would keep the agent from
// its next iteration.
func (a approvers) asksNoMore(all []approval.Request) {
	ctx := context.Background()
	a.s.settleApprovals(ctx, func(r approval.Request) string {
		if slices.ContainsFunc(all, func(o approval.Request) bool { return o.ID == r.ID }) {
			return "somebody else has said no"
		}
		return ""
	})
	a.s.lookAtApprovals(ctx)
}

// ask asks for one name, once for what is shown.
func (a approvers) ask(q proving.Ask, name string) (approval.Request, error) {
	s := a.s
	s.mu.Lock()
	m := s.fleet.find(q.Agent)
	var rules config.Approvals
	if m != nil {
		rules = m.Declared().Approvals
	}
	s.mu.Unlock()
	r := approval.Request{
		Agent: q.Agent, Key: q.Key, Name: name, Entry: q.Delivery, Iteration: q.Iteration, About: q.About, Aside: q.Aside,
		Question: foreign.Text(isDone(q.Prompt)),
		Payload:  foreign.Text("What the agent said:\n\n" + q.Reply + "\n\nWhat the check said:\n\n" + cmp.Or(strings.TrimSpace(q.Output), "nothing") + "\n\nThe prompt:\n\n" + q.Prompt),
	}
	if slices.Contains(config.ApprovalCategories, name) {
		r.Category = name
	}
	now := time.Now()
	r, err := s.approvals.ledger.Ask(context.Background(), r, rules, now)
	if err == nil && r.At.Equal(now) {
		s.noteApproval(r)
		s.lookAtApprovals(context.Background())
	}
	return r, err
}

// isDone is the question about a prompt whose check has passed.
func isDone(prompt string) string {
	const passed = "Its check has passed."
	if prompt = foreign.Short(strings.TrimSpace(prompt), 120); prompt == "" {
		return "Is this done? " + passed
	}
	return "Is this done? " + strconv.Quote(prompt) + " " + passed
}

// together is what several requests say: each has to be approved, and one no is a no.
func together(all []approval.Request) proving.Say {
	say := proving.Say{Answer: proving.Approved}
	var by []string
	for _, r := range all {
		if say.Since.IsZero() || r.At.Before(say.Since) {
			say.Since = r.At
		}
		switch {
		case r.Yes():
			by = append(by, r.Name+" by "+r.By)
		case r.Waits():
			if say.Answer == proving.Approved {
				say.Answer = proving.Waits
			}
		case say.Answer != proving.Rejected, r.State == approval.Rejected:
			say.Answer, say.By, say.Note = proving.Rejected, cmp.Or(r.By, "nobody: "+r.Answered()), r.Note.Raw()
		}
	}
	if say.Answer == proving.Approved {
		say.By = strings.Join(by, ", ")
	}
	return say
}

// mostAnswers is how much of answers an agent is told at once, with the next ones after
// that.
const mostAnswers = inbox.MaxAnswers

// Asked implements proving.Approvals.
func (a approvers) Asked(key, delivery string) (q proving.Asked, err error) {
	l := a.s.approvals.ledger
	own := func(r approval.Request) bool { return r.Key == key && r.Name == "" && r.Entry == delivery }
	waiting, err := l.Waiting()
	if q.Waits = slices.ContainsFunc(waiting, own); q.Waits || err != nil {
		return q, err
	}
	done, err := l.Done()
	for _, r := range done {
		text := r.HandOver()
		if !own(r) || !r.Owes() || len(q.IDs) > 0 && len(q.Answers)+len(text) > mostAnswers {
			continue
		}
		q.Answers, q.IDs = strings.TrimPrefix(q.Answers+"\n\n"+strings.TrimSpace(text), "\n\n"), append(q.IDs, r.ID)
	}
	return q, err
}

// Told implements proving.Approvals.
func (a approvers) Told(ids []string) (err error) {
	for _, id := range ids {
		err = errors.Join(err, a.s.approvals.ledger.Tell(context.Background(), id))
	}
	return err
}
