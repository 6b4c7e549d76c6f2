package consent

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/store"
)

var _ proving.Approvals = (*Keeper)(nil)

// Of implements proving.Approvals. All names in until.approve are asked at once, and it is a
// yes only if each is approved.
func (k *Keeper) Of(q proving.Ask) (proving.Say, error) {
	if len(q.Until.Approve) == 0 {
		return proving.Say{Answer: proving.NotAsked}, nil
	}
	all, err := store.Get(context.Background(), k.opt.Store.Reader, func(v *store.View) ([]approval.Request, error) {
		return approval.For(v, q.Key, q.Delivery, q.About)
	})
	if err != nil {
		return proving.Say{}, err
	}
	for _, name := range q.Until.Approve {
		switch {
		case together(all).Answer == proving.Rejected: // nobody else is asked
		case !slices.ContainsFunc(all, func(r approval.Request) bool { return r.Name == name }):
			r, err := k.ask(q, name)
			if err != nil {
				return proving.Say{}, err
			}
			all = append(all, r)
		}
	}
	say := together(all)
	if say.Answer == proving.Rejected && slices.ContainsFunc(all, approval.Request.Waits) {
		k.asksNoMore(all)
	}
	return say, nil
}

// asksNoMore withdraws the requests that still wait, which would keep the agent from its next
// iteration.
func (k *Keeper) asksNoMore(all []approval.Request) {
	ctx := context.Background()
	_ = k.settle(ctx, func(r approval.Request) string {
		if slices.ContainsFunc(all, func(o approval.Request) bool { return o.ID == r.ID }) {
			return "somebody else has said no"
		}
		return ""
	})
	k.Look(ctx)
}

// ask files the request for one name, once for what people are shown.
func (k *Keeper) ask(q proving.Ask, name string) (approval.Request, error) {
	var rules config.Approvals
	for _, a := range k.opt.Fleet.Agents() {
		if now := a.Now(); now.Name == q.Agent && !now.Removed {
			rules = now.Declared.Approvals
		}
	}
	r := approval.Request{
		Agent: q.Agent, Key: q.Key, Name: name, Entry: q.Delivery, Iteration: q.Iteration, About: q.About, Aside: q.Aside,
		Question: foreign.Text(isDone(q.Prompt)),
		Payload:  foreign.Text("What the agent said:\n\n" + q.Reply + "\n\nWhat the check said:\n\n" + cmp.Or(strings.TrimSpace(q.Output), "nothing") + "\n\nThe prompt:\n\n" + q.Prompt),
	}
	if slices.Contains(config.ApprovalCategories, name) {
		r.Category = name
	}
	return k.file(context.Background(), r, rules)
}

// isDone returns the question about a prompt whose check has passed.
func isDone(prompt string) string {
	const passed = "Its check has passed."
	if prompt = foreign.Short(strings.TrimSpace(prompt), 120); prompt == "" {
		return "Is this done? " + passed
	}
	return "Is this done? " + strconv.Quote(prompt) + " " + passed
}

// together combines the answers to several requests: each must be approved, and one no is a
// no.
func together(all []approval.Request) proving.Say {
	say := proving.Say{Answer: proving.Approved}
	var by []string
	for _, r := range all {
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

// mostAnswers limits how much of the answers an agent is told at once; the rest follows.
const mostAnswers = inbox.MaxAnswers

// Asked implements proving.Approvals.
func (k *Keeper) Asked(key, delivery string) (q proving.Asked, err error) {
	own := func(r approval.Request) bool { return r.Key == key && r.Name == "" && r.Entry == delivery }
	waiting, owed, err := k.read(context.Background())
	if q.Waits = slices.ContainsFunc(waiting, own); q.Waits || err != nil {
		return q, err
	}
	for _, r := range owed {
		text := r.HandOver()
		if !own(r) || len(q.IDs) > 0 && len(q.Answers)+len(text) > mostAnswers {
			continue
		}
		q.Answers, q.IDs = strings.TrimPrefix(q.Answers+"\n\n"+strings.TrimSpace(text), "\n\n"), append(q.IDs, r.ID)
	}
	return q, nil
}

// Told implements proving.Approvals.
func (k *Keeper) Told(ids []string) error {
	return k.change(context.Background(), func(c *store.Change) error { return approval.Tell(c, ids...) })
}
