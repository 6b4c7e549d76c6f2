package proving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// mostStale is how often in a row a verdict that the queue does not await is decided
// again at once. Then it is told, and there is a wait before the next try: a record that
// says one thing to who reads it and another one to who writes it would be looked at
// without end.
const mostStale = 3

// looksAgain counts a step that the queue did not await, and reports whether the next
// look may follow at once.
func (r *run) looksAgain() bool {
	r.stale++
	return r.stale <= mostStale
}

// apply carries a verdict out.
func (r *run) apply(ctx context.Context, s subject, v *ledger.Verdict) (*inbox.Verdict, next, error) {
	out := r.inForm(s, v)
	if err := r.passes(s, v); err != nil {
		return nil, on, err
	}
	if out.GiveUp == inbox.Forged {
		if err := s.handedOver(out); err != nil {
			return nil, on, err
		}
	}
	err := queue.Apply(ctx, s.agent, *out)
	switch {
	case errors.Is(err, inbox.ErrStale) && r.looksAgain():
		return nil, on, nil
	case err != nil:
		return nil, on, err
	}
	r.stale = 0
	r.moved()
	if out.Again {
		return nil, on, nil
	}
	if v.Answers != "" { // its work on this iteration goes on
		r.settled(s, v)
		if err := r.opt.Approvals.Told(v.Told); err != nil {
			r.opt.Log.Warn("cannot note that an agent has its answers", "agent", s.agent.Name, "err", err)
		}
		r.opt.Log.Info("an entry goes on with the answers to what its agent has asked", "agent", s.agent.Name, "entry", v.Delivery)
		return out, on, nil
	}
	if r.Judged != nil {
		r.Judged()
	}
	r.settled(s, v)
	if v.GiveUp == inbox.Forged {
		r.tellForged(s.agent, v.Delivery, v.Why)
	} else {
		r.note(s.agent, v)
	}
	return out, on, nil
}

func (r *run) moved() {
	if r.HasMoved != nil {
		r.HasMoved()
	}
}

// handedOver puts into a forged verdict the line that is to be filed, where the inbox does
// not tell.
func (s subject) handedOver(v *inbox.Verdict) (err error) {
	switch {
	case s.apart != nil:
		v.Line = s.apart.Line()
	case s.sent != nil:
		v.Line, err = inbox.SentLine(s.sent.ID, s.sent.Text)
	}
	return err
}

// passes records that what is demanded of an entry has passed, before its record says so.
func (r *run) passes(s subject, v *ledger.Verdict) error {
	if !v.Passed {
		return nil
	}
	demand, err := r.demandOf(s.agent, s.flight)
	if err != nil || demand == nil {
		return err
	}
	return ledger.Passes(r.opt.StateDir, s.agent.Inbox, demand.ID, v.Delivery)
}

// inForm is a verdict as the queue takes it.
func (r *run) inForm(s subject, v *ledger.Verdict) *inbox.Verdict {
	out := &inbox.Verdict{
		Delivery: v.Delivery, Entry: v.Entry, Check: v.Check, NeverAside: s.apart == nil, Passed: v.Passed, Again: v.Passed && v.Applied,
		GiveUp: v.GiveUp, Output: v.Output, By: v.By, Took: v.Took, Now: time.Now(), Answers: v.Answers, Iteration: v.Iteration, Records: s.book.Records,
	}
	if s.until != nil && s.until.MaxIterations > 0 {
		out.Most = s.until.MaxIterations + s.book.Course(v.Delivery).Asks
	}
	if out.GiveUp != "" {
		out.Cause = cause(v)
	}
	return out
}

// settled records that the queue has a verdict.
func (r *run) settled(s subject, v *ledger.Verdict) {
	c := s.book.Course(v.Delivery)
	if c.Verdict != nil && c.Verdict.Same(*v) {
		now := *c.Verdict
		now.Applied, c.Verdict = true, &now
	}
	err := errors.Join(s.book.Keep(c), r.textEnds(s, v))
	if v.GiveUp == inbox.Forged { // Settle handles what is demanded of its line
		if err != nil {
			r.opt.Log.Warn(err.Error(), "agent", s.agent.Name)
		}
		return
	}
	id := s.flight.ID
	if demand, _ := r.demandOf(s.agent, s.flight); demand != nil && demand.ID != id {
		id = demand.ID // the flight names another one
		if v.Passed || v.GiveUp != "" {
			err = errors.Join(err, ledger.DropTexts(r.opt.StateDir, s.agent.Inbox, id))
		}
	}
	switch {
	case v.Passed:
		err = errors.Join(err, ledger.DropDemand(r.opt.StateDir, s.agent.Inbox, id))
	case v.GiveUp != "":
		err = errors.Join(err, ledger.GiveUp(r.opt.StateDir, s.agent.Inbox, id))
	}
	if err != nil {
		r.opt.Log.Warn(err.Error(), "agent", s.agent.Name)
	}
}

// cause is why an entry is given up, in a line.
func cause(v *ledger.Verdict) string {
	what := v.Why
	if gist := status.Gist(v.Output); gist != "" {
		what += ": " + gist
	}
	return fmt.Sprintf("after %s: %s", iterations(v.Iteration), what)
}

func iterations(n int) string {
	if n == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", n)
}

// note tells the journal and the log of a verdict that was applied.
func (r *run) note(a *config.Agent, v *ledger.Verdict) {
	verdict := journal.Unproven
	switch {
	case v.Passed:
		verdict = journal.Passed
	case v.GiveUp != "":
		verdict = string(v.GiveUp)
	}
	r.opt.Note(journal.Event{
		Agent: a.Name, Kind: journal.Checked, Entry: v.Delivery, Verdict: verdict, Iteration: v.Iteration,
		Reason: foreign.Text(v.Why), Detail: foreign.Text(status.Gist(v.Output)), Started: v.At.Add(-v.Took), TookMS: v.Took.Milliseconds(),
	})
	log := r.opt.Log.With("agent", a.Name, "entry", v.Delivery, "iteration", v.Iteration, "took", v.Took.Round(time.Millisecond))
	switch {
	case v.Passed:
		log.Info("an entry is proven")
	case v.GiveUp != "":
		log.Warn("an entry is given up: it could not be proven", "why", v.GiveUp, "check", cause(v))
	default:
		log.Info("an entry is not proven, and is handed over again", "check", v.Why, "says", status.Gist(v.Output))
	}
}
