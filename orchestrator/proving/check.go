package proving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// check runs the check of an entry. If it has not passed, the verdict says so; if it
// has, and nobody else has to agree, too; otherwise c.Answered keeps that it has.
// All three may be missing: it gave no answer, and check has waited.
func (r *run) check(ctx context.Context, s subject, c *ledger.Course, v ledger.Verdict) (*ledger.Verdict, error) {
	before := r.opt.Files(ctx, s.agent.Dir)
	same := before != "" && before == c.Files
	result, err := r.runs(ctx, s)
	switch {
	case errors.Is(err, errOther), err == nil && !r.stillAsked(s):
		return nil, nil // look again
	case err != nil || ctx.Err() != nil:
		return nil, err
	case result.Answer == proof.Later || result.Answer == proof.Trouble:
		return nil, r.asksAgain(ctx, s, *c, result)
	}
	r.again, r.vain, c.Vain = 0, nil, nil
	v.At, v.Took, v.Output, v.Why = time.Now(), result.Took, result.Output, result.Why
	c.Files = r.opt.Files(ctx, s.agent.Dir)
	if result.Answer == proof.Failed {
		return r.notPassed(s, *c, v, result.Said, same)
	}
	if claim := s.flight.Claim; claim == nil || !s.until.Promises(claim.Reply) {
		v.By, v.Why = "promise", "it passes, and the claim is missing"
		v.Output = fmt.Sprintf("The check passes. What is missing is your claim that all is done, in your last message: <promise>%s</promise>", s.until.Promise)
		return r.notPassed(s, *c, v, v.Output, same)
	}
	c.Answered = &ledger.Answered{Check: v.Check, Claimed: v.Claimed, Definition: v.Definition, Output: v.Output, Took: v.Took, At: v.At}
	if len(s.until.Approve) == 0 {
		return nil, nil
	}
	return nil, s.book.Keep(*c) // it is not run again while people decide, and what they are asked about stands
}

// runs runs the check once there is room for it, and ends it where it answers for
// nothing any more: errOther.
func (r *run) runs(ctx context.Context, s subject) (proof.Result, error) {
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
		return r.opt.Check(ctx, proof.Check{
			Agent: s.agent.Name, Delivery: s.flight.DeliveryID, Iteration: s.flight.Iteration, Key: r.Key, Argv: s.until.Argv(), Dir: s.agent.Dir,
			Env: s.until.Environ(), Timeout: s.until.CheckTimeout, StateDir: r.opt.StateDir,
		})
	})
	if held, is := errors.AsType[*attempts.HeldError](err); is {
		return proof.Result{Answer: proof.Trouble, Why: held.Error()}, nil
	}
	return result, err
}

// asksAgain waits after a check that has not answered: it is no iteration.
func (r *run) asksAgain(ctx context.Context, s subject, c ledger.Course, result proof.Result) error {
	is, why := status.CheckAgain, "the check asks to be asked again later (exit status 75)"
	if result.Answer == proof.Trouble {
		is, why = status.CheckTrouble, "the check cannot be run: "+result.Why
	}
	r.inVain(s.agent, is, why)
	c.Vain = &ledger.Vain{Since: r.vain.Since, Times: r.vain.Times, As: string(is), Why: why}
	if err := s.book.Keep(c); err != nil {
		return err
	}
	at := time.Now().Add(guard.Again(r.again))
	r.again++
	r.waits(ctx, s, is, at, why)
	return nil
}

// errOther means that what was checked is not what is to be checked any more.
var errOther = errors.New("the check was superseded")

// lookEvery is how often a check that runs or waits is compared with what is asked for.
const lookEvery = time.Second

// stillAsked reports whether the queue and the file still ask for the check of s: the entry
// has not been taken back, dropped or worked on, its directory is there, and it has to
// pass the same. Where that cannot be told, they do.
func (r *run) stillAsked(s subject) bool {
	a := r.Agent()
	f, err := queue.InFlight(a)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if f == nil || f.State != inbox.Checking || f.DeliveryID != s.flight.DeliveryID || f.EntryID != s.flight.EntryID || f.Check != s.flight.Check || !claimedAt(f).Equal(claimedAt(s.flight)) {
		return false
	}
	until, _, err := r.nearest(a, f, s.book, s.book.Course(f.DeliveryID))
	return err != nil || subject{until: until}.definition() == s.definition()
}

// claimedAt is when the session has claimed to be done; zero: none has.
func claimedAt(f *inbox.InFlight) time.Time {
	if f.Claim == nil {
		return time.Time{}
	}
	return f.Claim.Since
}

// whileAsked returns a context that ends, for errOther, once the check of s is not asked
// for any more. stop ends looking.
func (r *run) whileAsked(ctx context.Context, s subject) (asked context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var seen sight // nothing yet: s may be older than the records
		clock := time.NewTicker(lookEvery)
		defer clock.Stop()
		for {
			told := false
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			case <-r.Wake:
			case <-r.Look:
				told = true
			}
			if (seen.changed(r.Agent()) || told) && !r.stillAsked(s) {
				end(errOther)
				return
			}
		}
	}()
	return ctx, func() { end(nil); <-done }
}

// sight is what stillAsked depends on, as it was seen last.
type sight struct {
	agent *config.Agent
	files []durable.Stamp
}

// changed reports whether the agent's definition or the records of what is in flight
// may be other ones than at the last call.
func (s *sight) changed(a *config.Agent) bool {
	now := sight{agent: a}
	for _, path := range inbox.FlightFiles(a.Inbox) {
		now.files = append(now.files, durable.StampOf(os.Lstat(path)))
	}
	same := now.agent == s.agent && slices.EqualFunc(s.files, now.files, durable.Stamp.Same)
	*s = now
	return !same
}
