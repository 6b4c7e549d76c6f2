package proving

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/status"
)

// about begins to tell of an entry.
func (r *run) about(f *inbox.InFlight) {
	if r.told.Delivery != f.DeliveryID || r.told.Iteration != f.Iteration {
		r.again, r.vain = 0, nil
		r.told = status.Proof{Delivery: f.DeliveryID, Iteration: f.Iteration, Most: f.Most, Why: foreign.Text(status.Gist(f.Output))}
	}
}

// tell says how far the check is.
func (r *run) tell(s status.ProofState, until time.Time, why string) {
	p := r.told
	if p.State != s {
		p.Since = time.Now()
	}
	p.State, p.Until, p.Vain = s, until, r.vain
	if why != "" {
		p.Why = foreign.Text(why)
	}
	if p != r.told {
		r.told = p
		r.Tell(p)
	}
}

// waits tells what is awaited until a time, and waits for it, until somebody wants it
// tried again, or until the check of s is not asked for any more.
func (r *run) waits(ctx context.Context, s subject, is status.ProofState, until time.Time, why string) {
	r.tell(is, until, why)
	clock := time.NewTimer(time.Until(until))
	defer clock.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var seen sight // nothing yet: s may be older than the records
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			return
		case <-r.Wake:
			return
		case <-look.C:
			if seen.changed(r.Agent()) && !r.stillAsked(s) {
				return
			}
		case <-r.Look:
			if !r.stillAsked(s) {
				return
			}
		}
	}
}

// trouble tells at once what prevents a verdict, and waits before the next try.
func (r *run) trouble(ctx context.Context, err error) {
	r.inVain(r.Agent(), status.CheckTrouble, err.Error())
	at := time.Now().Add(guard.Again(r.again))
	r.again++
	r.tell(status.CheckTrouble, at, err.Error())
	clock := time.NewTimer(time.Until(at))
	defer clock.Stop()
	select {
	case <-ctx.Done():
	case <-clock.C:
	case <-r.Wake:
	case <-r.Look:
	}
}

// recalls takes over what an earlier run has recorded of checks that gave no answer.
func (r *run) recalls(s subject, c ledger.Course) {
	if v := c.Vain; v != nil && r.vain == nil {
		r.vain = &status.Vain{As: status.ProofState(v.As), Since: v.Since, Times: v.Times, Why: foreign.Text(v.Why), Late: late(s.agent, v.Since)}
	}
}

// late is from when on people are told that an agent's check only asks to be asked
// again; zero: never.
func late(a *config.Agent, since time.Time) time.Time {
	if a.StuckAfter <= 0 {
		return time.Time{}
	}
	return since.Add(a.StuckAfter)
}

// inVain counts a check that gave no answer, and tells the journal and the log of it,
// once for each cause.
func (r *run) inVain(a *config.Agent, is status.ProofState, why string) {
	v := status.Vain{Since: time.Now()}
	if r.vain != nil {
		v = *r.vain
	}
	known := v.As == is && v.Why.Raw() == why
	v.As, v.Why, v.Late = is, foreign.Text(why), late(a, v.Since)
	v.Times++
	if r.vain = &v; known {
		return
	}
	r.opt.Note(journal.Event{Agent: a.Name, Kind: journal.Checked, Entry: r.told.Delivery, Verdict: string(is), Iteration: r.told.Iteration, Reason: foreign.Text(why)})
	if is == status.CheckTrouble {
		r.opt.Log.Warn("a check cannot be run, and is asked again", "agent", a.Name, "entry", r.told.Delivery, "why", why)
	}
}
