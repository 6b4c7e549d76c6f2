package proving

import (
	"context"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/status"
)

// decide returns the verdict about the check that the queue asks for: the one that
// stands in the ledger, or a new one, which stands there when decide returns. nil:
// there is none yet, and decide has waited for what is next.
func (r *run) decide(ctx context.Context, s subject, c ledger.Course) (*ledger.Verdict, error) {
	v := s.verdict(c)
	if stands := c.Stands(v); stands != nil {
		return stands, nil
	}
	if past := c.Verdict; past != nil && past.Passed && past.Applied && past.Entry == v.Entry {
		v.By, v.Why, v.Passed, v.Applied = past.By, "it was done before", true, true
		return &v, nil
	}
	if s.until == nil {
		v.By, v.Why = "none", "nothing has to be passed any more"
		v.Passed = s.flight.Interrupted == "" // else nobody has said that it is done, and on-orphan decides
		c.Verdict = &v
		return &v, s.book.Keep(c)
	}
	if told, waits, err := r.asked(ctx, s, c, v); err != nil || waits || told != nil {
		return told, err
	}
	if !c.Waits(v) {
		c.Answered = nil
		ran, err := r.check(ctx, s, &c, v)
		if err != nil || ran != nil || c.Answered == nil {
			return ran, err
		}
	}
	return r.approved(ctx, s, c, v)
}

// verdict is one about the check of s that the queue asks for, yet to be decided.
func (s subject) verdict(c ledger.Course) ledger.Verdict {
	return ledger.Verdict{
		Delivery: s.flight.DeliveryID, Entry: s.flight.EntryID, Check: s.flight.Check, Claimed: claimedAt(s.flight), Definition: s.definition(),
		Iteration: c.Iteration(), By: "check", At: time.Now(),
	}
}

// notPassed decides what follows an iteration that was not proven.
func (r *run) notPassed(s subject, c ledger.Course, v ledger.Verdict, said string, same bool) (*ledger.Verdict, error) {
	worked := r.worked(s, c)
	var d guard.Decision
	c.Past, d = c.Past.After(
		guard.Iteration{Worked: worked, Said: said, Same: same}, guard.Rule{MaxIterations: s.until.MaxIterations, MaxTime: s.until.MaxTime},
	)
	if v.GiveUp = d.Gone; d.Wait > 0 {
		v.NotBefore = v.At.Add(d.Wait)
	}
	c.Answered, c.Verdict = nil, &v
	return &v, s.book.Keep(c)
}

// worked is how long the agent has worked in this iteration: as this run has seen it.
// Where it has seen nothing of it (the scheduler was started since), it is as long as
// the record says, which the agent can write: but not longer than since the last verdict.
// A session that was interrupted has claimed nothing, and nobody knows how long it worked:
// hours in which nothing ran are no work.
func (r *run) worked(s subject, c ledger.Course) time.Duration {
	if r.Worked != nil {
		if seen := r.Worked(); seen > 0 {
			return seen
		}
	}
	claim := s.flight.Claim
	if claim == nil || s.flight.DeliveredAt.IsZero() || s.flight.Interrupted != "" {
		return 0
	}
	recorded := claim.Since.Sub(s.flight.DeliveredAt)
	if c.Verdict != nil {
		recorded = min(recorded, time.Since(c.Verdict.At))
	}
	return max(0, recorded)
}

// askEvery is how often an approval is looked at that nobody has announced.
const askEvery = time.Minute

// approved asks people about an entry whose check has passed.
func (r *run) approved(ctx context.Context, s subject, c ledger.Course, v ledger.Verdict) (*ledger.Verdict, error) {
	v.At, v.Took, v.Output = c.Answered.At, c.Answered.Took, c.Answered.Output
	say, ask := Say{}, r.ask(s, c)
	if r.opt.Approvals != nil {
		var err error
		if say, err = r.opt.Approvals.Of(ask); err != nil {
			return nil, err
		}
	}
	switch say.Answer {
	case NotAsked:
	case Approved:
		v.By = "check, " + say.By
	case Rejected:
		v.By, v.Why, v.At, v.Output = say.By, "not approved", time.Now(), "Rejected by "+say.By
		if say.Note != "" {
			v.Output += ": " + say.Note
		}
		return r.notPassed(s, c, v, v.Output, false)
	case Waits:
		switch {
		case r.apart:
			return nil, nil
		case ask.Aside:
			return nil, r.setAside(ctx, s)
		}
		r.waits(ctx, s, status.CheckAwaits, time.Now().Add(askEvery), "waits for approval")
		return nil, nil
	}
	v.Passed = true
	c.Answered, c.Verdict = nil, &v
	return &v, s.book.Keep(c)
}

func (r *run) ask(s subject, c ledger.Course) Ask {
	a := Ask{
		Agent: s.agent.Name, Key: r.Key, Delivery: s.flight.DeliveryID,
		Iteration: c.Iteration(), Until: s.until, Prompt: s.flight.Prompt(), Output: c.Answered.Output, About: shown(s.flight, c),
		Aside: r.apart || r.aside(s),
	}
	if claim := s.flight.Claim; claim != nil {
		a.Reply = claim.Reply
	}
	return a
}

// Answered reports whether a check has answered for the iteration that an entry in flight
// says it is unproven after: its record is the agent's to write.
func (d *Desk) Answered(key string, f *inbox.InFlight) bool {
	book, err := d.Book(key)
	if err != nil {
		return true // nobody knows
	}
	v := book.Course(f.DeliveryID).Verdict
	return v != nil && !v.Passed && v.Check == f.Check
}
