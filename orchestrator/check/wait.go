package check

import (
	"context"
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// errSuperseded means that what was checked is not what is to be checked any more.
var errSuperseded = errors.New("the check was superseded")

// runs runs the check once there is room for it, and ends it where it answers for nothing any
// more: errSuperseded.
func (r *run) runs(ctx context.Context, s *subject) (proof.Result, error) {
	ctx, stop := r.whileAsked(ctx, s)
	defer stop()
	if err := s.agent.Exposed(); err != nil {
		return proof.Result{Answer: proof.Trouble, Why: err.Error()}, nil
	}
	if r.room.IsFull() {
		r.tell(status.CheckQueued, time.Time{}, "")
	}
	if err := r.room.Enter(ctx); err != nil {
		return proof.Result{}, err
	}
	defer r.room.Leave()
	r.tell(status.CheckRuns, time.Time{}, "")
	result, err := attempts.Run(ctx, r.attempts, attempts.Work{Kind: attempts.Check, Agent: s.agent.Name, Definition: s.definition()}, func() (proof.Result, error) {
		return r.opt.Run(ctx, proof.Check{
			Agent: s.agent.Name, Delivery: s.Delivery, Iteration: s.Iteration, Key: r.Key, Argv: s.until.Argv(), Dir: s.agent.Dir,
			Env: s.until.Environ(), Timeout: s.until.CheckTimeout, StateDir: r.opt.StateDir,
		})
	})
	if held, is := errors.AsType[*attempts.HeldError](err); is {
		return proof.Result{Answer: proof.Trouble, Why: held.Error()}, nil
	}
	return result, err
}

// isAsked reports whether the store and the file still ask for the check of s. Where that cannot
// be told, they do.
func (r *run) isAsked(ctx context.Context, s *subject) bool {
	now, err := r.subjectOf(ctx, r.Agent(), r.inFlight(r.Key))
	if err != nil {
		return true
	}
	return now != nil && now.Key == s.Key && now.State == s.State && now.Check == s.Check && now.definition() == s.definition()
}

// whileAsked returns a context that ends, for errSuperseded, once the check of s is not asked for
// any more. stop ends looking.
func (r *run) whileAsked(ctx context.Context, s *subject) (asked context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.Wake:
			case <-r.Look:
			}
			if !r.isAsked(ctx, s) {
				end(errSuperseded)
				return
			}
		}
	}()
	return ctx, func() { end(nil); <-done }
}

// waits tells what is awaited until a time, and waits for it, until somebody wants it tried
// again, or until the check of s is not asked for any more.
func (r *run) waits(ctx context.Context, s *subject, is status.ProofState, until time.Time, why string) {
	r.tell(is, until, why)
	clock := time.NewTimer(time.Until(until))
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			return
		case <-r.Wake:
			return
		case <-r.Look:
			if !r.isAsked(ctx, s) {
				return
			}
		}
	}
}

// about begins to tell of an entry.
func (r *run) about(s *subject) {
	if r.told.Delivery != s.Delivery || r.told.Iteration != s.Iteration {
		r.again, r.vain = 0, nil
		r.told = status.Proof{Delivery: s.Delivery, Iteration: s.Iteration, Most: s.Most, Why: foreign.Text(status.Gist(s.output))}
	}
	if s.vain != nil && r.vain == nil { // of an earlier run
		r.vain = s.vain
		r.vain.Late = late(s.agent, r.vain.Since)
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

// asksAgain waits after a check that has not answered: it is no iteration.
func (r *run) asksAgain(ctx context.Context, s *subject, result proof.Result) error {
	is, why := status.CheckAgain, "the check asks to be asked again later (exit status 75)"
	if result.Answer == proof.Trouble {
		is, why = status.CheckTrouble, "the check cannot be run: "+result.Why
	}
	r.inVain(s.agent, is, why)
	if err := r.write(ctx, func(c *store.Change) error { return keepVain(c, s.Key, r.vain) }); err != nil {
		return err
	}
	at := time.Now().Add(guard.Again(r.again))
	r.again++
	r.waits(ctx, s, is, at, why)
	return nil
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

// late is from when on people are told that an agent's check only asks to be asked again; zero:
// never.
func late(a *config.Agent, since time.Time) time.Time {
	if a.StuckAfter <= 0 {
		return time.Time{}
	}
	return since.Add(a.StuckAfter)
}

// inVain counts a check that gave no answer, and tells the journal and the log of it, once for
// each cause.
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

func vainOf(v *store.View, k queue.Key) (*status.Vain, error) {
	var vain status.Vain
	var since int64
	var why string
	found, err := v.One(`SELECT since, times, what, why FROM unanswered_checks WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, &since, &vain.Times, &vain.As, &why)
	if !found || err != nil {
		return nil, err
	}
	vain.Since, vain.Why = store.Time(since), foreign.Text(why)
	return &vain, nil
}

func keepVain(c *store.Change, k queue.Key, v *status.Vain) error {
	if err := dropVain(c, k); err != nil {
		return err
	}
	_, err := c.Do(`INSERT INTO unanswered_checks (agent, seq, since, times, what, why) VALUES ($1, $2, $3, $4, $5, $6)`,
		k.Agent, k.Seq, store.Millis(v.Since), v.Times, string(v.As), v.Why.Raw())
	return err
}

func dropVain(c *store.Change, k queue.Key) error {
	_, err := c.Do(`DELETE FROM unanswered_checks WHERE agent = $1 AND seq = $2`, k.Agent, k.Seq)
	return err
}
