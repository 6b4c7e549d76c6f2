package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// course is one session of a member, as def declares it, from its preparation to
// the recovery of what it leaves. It has a goroutine of its own.
type course struct {
	*Scheduler
	m   *member
	def *config.Agent
}

// errNotAdmitted means that a start was taken back.
var errNotAdmitted = errors.New("the session is not to begin any more")

func (c course) run() {
	b, err := c.start()
	if errors.Is(err, errNotAdmitted) {
		return
	}
	if err != nil {
		f := c.failure(c.def, err)
		c.happened(c.m, func(now time.Time) {
			c.fleet.declines(c.m, now)
			c.m.Fails(*f, now, agent.Roll())
		})
		return
	}
	started := c.opt.Now()
	c.happened(c.m, func(now time.Time) {
		c.m.live = b.live
		c.m.Launched(b.spec.Session, c.fleet.shutdown(), now)
		if a := c.fleet.accounts.May(c.m.Name, now); !a.May && a.Known() { // since it was asked
			c.m.StopForLimit(a.Reason)
		}
	})
	o := c.follow(b)
	c.records.note(journal.Event{
		Agent: c.m.Name, Kind: journal.Ended, Session: b.spec.Session, Reason: foreign.Text(agent.Describe(o)), Detail: foreign.Text(o.Screen),
		Started: started, Acknowledged: o.Acknowledged, Why: o.Why,
	})
	c.ended(b, o)
}

// launched is a session that was started.
type launched struct {
	live    session.Live
	spec    session.Spec
	answers string // that were in place then
	// replies is how far what it calls done is compared with what is proven.
	replies inbox.OutboxMark
}

// start prepares a session and starts its shim.
func (c course) start() (launched, error) {
	if !c.directories.has(c.m, c.def) {
		c.happened(c.m, func(now time.Time) {
			c.fleet.declines(c.m, now)
			c.m.NotBegun("its directory is not the one that was locked")
		})
		c.directories.inspect(c.m)
		return launched{}, errNotAdmitted
	}
	if err := c.owed(); err != nil {
		return launched{}, err
	}
	env, err := launch.Environment(c.def)
	if err != nil {
		return launched{}, err
	}
	if !c.meets() {
		return launched{}, errNotAdmitted
	}
	if err := c.recallRest(); err != nil {
		return launched{}, err
	}
	if !c.admitted(account.Of(env)) {
		return launched{}, errNotAdmitted
	}
	prepared, err := c.prepare(c.m, c.def)
	if err != nil {
		return launched{}, err
	}
	spec, err := c.spec(prepared, env)
	if err != nil {
		return launched{}, err
	}
	replies := queue.EndOfReplies(c.def)
	c.keeps(&replies)
	live, err := c.opt.Runner.Start(context.Background(), spec)
	return launched{live, spec, prepared.Answers, replies}, err
}

// prepare brings a member's directory in line, and checks what would prevent a
// session from working.
func (s *Scheduler) prepare(m *member, def *config.Agent) (launch.Prepared, error) {
	prepared, err := s.opt.Prepare(def)
	if err == nil && prepared.Changed {
		s.records.note(journal.Event{Agent: m.Name, Kind: journal.Applied})
	}
	return prepared, err
}

// admitted records which account the session will use, and reports whether it may
// go on.
func (c course) admitted(id account.ID) (ok bool) {
	c.happened(c.m, func(now time.Time) {
		f := &c.fleet
		if c.m.Removed() { // it has left the line of its account for good
			c.m.NotBegun(agent.FinishRemoved)
			return
		}
		if f.judge(c.m, now); c.m.Overspent(now) {
			f.declines(c.m, now)
			c.m.NotBegun("what it may spend is spent")
			return
		}
		ask, anew := f.accounts.Joins(c.m.Name, id)
		c.fleet.askAgain(ask)
		ok = !anew || c.fleet.may(c.m, now)
	})
	return ok
}

// spec returns the specification of a session that continues what the service has
// interrupted, if anything. If that is not possible, the entry is an orphan.
func (c course) spec(prepared launch.Prepared, env []string) (session.Spec, error) {
	if _, err := c.desk.Return(context.Background(), c.def, c.m.key); err != nil {
		return session.Spec{}, err
	}
	f, unproven, err := interrupted(c.def)
	if err != nil {
		return session.Spec{}, err
	}
	if err := c.desk.Begins(c.def, c.m.key); err != nil {
		return session.Spec{}, err
	}
	policy := c.def.Policy()
	if err := c.meet(&policy, prepared); err != nil {
		return session.Spec{}, err
	}
	apart := c.apart(&policy, f, unproven)
	c.mu.Lock()
	goesOn := c.m.GoesOn()
	c.mu.Unlock()
	t := launch.Ticket{
		Agent: c.def, Key: c.m.key, Env: env, Account: string(account.Of(env)), Policy: policy, Prepared: prepared, Interrupted: f, Unproven: unproven, Apart: apart, GoesOn: goesOn,
		Store: c.opt.Store, StateDir: c.opt.StateDir, RuntimeDir: c.opt.RuntimeDir, Ours: c.opt.Ours,
	}
	spec, err := t.Spec()
	if err == nil && f != nil && spec.GoOn == "" {
		c.log.Warn("it is not known in which conversation an entry was interrupted", "agent", c.m.Name, "entry", f.DeliveryID)
		_, err = c.orphans.recover(context.Background(), c.m, c.def, session.Outcome{Why: hook.EndAPIFailure, Detail: f.Failure}, dealing{abandon: true})
	}
	return spec, err
}

// meet completes a session's policy with what is known of the Stop hooks beside
// ours. One that has continued a client is a gate, perhaps with a good reason ("run
// the tests first"): it gets to finish, so the session takes one entry.
func (c course) meet(p *hook.Policy, prepared launch.Prepared) error {
	if c.opt.Once {
		p.Mode = hook.Drain
	}
	p.ForeignStopHooks = prepared.StopHooks.Any() || p.Foreign == hook.ForeignGate
	if p.Gated = p.Foreign == hook.ForeignGate; p.Foreign != hook.ForeignLearn {
		return nil
	}
	gates, err := store.Get(context.Background(), c.opt.Store.Reader, func(v *store.View) ([]string, error) {
		return stophooks.Gates(v, c.m.key, prepared.StopHooks)
	})
	p.Gated = len(gates) > 0
	return err
}

// interrupted returns the entry in flight of an agent without a session, if a
// failure that passes has ended its turn, or if its check has not passed; otherwise
// nil.
func interrupted(c *config.Agent) (failed, unproven *inbox.InFlight, err error) {
	f, err := queue.InFlight(c)
	switch {
	case err != nil || f == nil:
	case f.State == inbox.Unproven:
		return nil, f, nil
	case agent.Passing(f.Failure):
		return f, nil, nil
	}
	return nil, nil, err
}

// reclaimEvery is how often disk space is freed while a session lives: one that is
// never idle may live for a year.
const reclaimEvery = 10 * time.Minute

// follow follows a live session to its end. If its shim's last report has no
// outcome, the shim died, and what it left is ended.
func (c course) follow(b launched) session.Outcome {
	var last session.Report
	asked := queue.RequestsOf(c.def, b.spec.Session)
	n := &count{mark: b.replies, done: map[string]bool{}}
	defer func() { c.settles(n) }()
	reclaim := time.NewTicker(reclaimEvery)
	defer reclaim.Stop()
	for {
		select {
		case r, open := <-b.live.Reports():
			switch {
			case !open && last.Outcome != nil:
				if last.Outcome.Owes {
					c.orphans.sweep(c.m)
				}
				return *last.Outcome
			case !open:
				c.orphans.sweep(c.m)
				c.settled()
				return shimDied(last)
			}
			if r.Wish != nil {
				c.grants(b.live, *r.Wish)
				continue
			}
			if r.Bill != nil {
				c.bills(b.live, r.Bill)
				continue
			}
			if r.Ask != nil {
				answer := asked.Carry(context.Background(), *r.Ask)
				b.live.Order(session.Order{Answer: &answer})
				continue
			}
			r = c.counts(n, r)
			if r.Work != nil && (last.Work == nil || *r.Work != *last.Work) {
				c.handedOver(r.Work)
			}
			if last = r; r.Outcome == nil {
				c.reported(r)
			} else {
				c.happened(c.m, func(now time.Time) {
					c.m.Answers(r.Answers)
					c.m.Strays(r.Outcome.Strays)
					c.spent(r.Spent, now)
				})
			}
		case <-reclaim.C:
			c.queues.reclaim(c.m, c.def)
		}
	}
}

// bills records what a session has cost, before what it reports afterwards is heeded, and
// answers it.
func (c course) bills(live session.Live, records []usage.Record) {
	answer := session.Billed{Number: records[len(records)-1].Number}
	if err := session.Bill(context.Background(), c.opt.Store, records...); err != nil {
		c.log.Warn(err.Error())
		answer.Why = err.Error()
	}
	live.Order(session.Order{Billed: &answer})
}

// grants has done what something in the session wants, and answers it. The session goes on
// meanwhile.
func (c course) grants(live session.Live, w session.Wish) {
	if c.opt.Grant == nil {
		live.Order(session.Order{Granted: &session.Granted{N: w.N}})
		return
	}
	agent := c.m.Name
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), grantWithin)
		defer cancel()
		live.Order(session.Order{Granted: &session.Granted{N: w.N, Answer: c.opt.Grant(ctx, agent, w.Want)}})
	})
}

// grantWithin is how long what a session wants may take.
const grantWithin = 50 * time.Second

// shimDied returns the outcome of a session whose shim ended without one.
func shimDied(last session.Report) session.Outcome {
	return session.Outcome{
		Why: hook.EndCrashed, Detail: "its shim died", Acknowledged: last.Acknowledged,
		Bound: last.Phase != "" && last.Phase != hook.Starting,
	}
}

// reported takes a report of the live session.
func (c course) reported(r session.Report) {
	c.happened(c.m, func(now time.Time) {
		answered := r.Answered && !c.m.Reported().Answered
		if now, was := r.Checking, c.m.Reported().Checking; !sameValue(now, was) {
			c.m.checkChanges(now)
		} else if now != nil && !c.m.Checks() { // what has ended stands in the record again
			c.m.ToCheck()
		}
		c.spent(r.Spent, now)
		if c.m.Reports(r, now) {
			c.log.Info("entry done", "agent", c.m.Name, "done", c.m.Done())
			c.fleet.hasDone(c.m, now)
		}
		c.m.cancels(cancelled{})
		if r.Told != nil {
			c.fleet.shows(c.m, r.Told.Limits)
		}
		if answered {
			c.fleet.isAnswered(c.m, now)
		}
		c.opt.Step(fmt.Sprintf("%s: %s, %d done", c.m.Name, r.Phase, c.m.Done()))
	})
}
