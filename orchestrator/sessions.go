package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
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
	started := time.Now()
	c.happened(c.m, func(now time.Time) {
		c.m.live = b.live
		c.m.Launched(b.spec.Session, c.fleet.shutdown(), now)
		if a := c.fleet.accounts.May(c.m.Name, now); !a.May && a.Known() { // since it was asked
			c.m.StopForLimit(a.Reason)
		}
	})
	o := c.follow(b.live)
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
}

// start prepares a session and starts its shim.
func (c course) start() (launched, error) {
	if !c.Scheduler.has(c.m, c.def) {
		c.happened(c.m, func(now time.Time) {
			c.fleet.declines(c.m, now)
			c.m.NotBegun("its directory is not the one that was locked")
		})
		c.inspect(c.m)
		return launched{}, errNotAdmitted
	}
	env, err := launch.Environment(c.def)
	if err != nil {
		return launched{}, err
	}
	if !c.meets() {
		return launched{}, errNotAdmitted
	}
	c.recallRest()
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
	live, err := c.opt.Runner.Start(context.Background(), spec)
	return launched{live, spec, prepared.Answers}, err
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

// ask checks whether what prevents a member's sessions from working is gone.
func (s *Scheduler) ask(m *member, def *config.Agent) {
	select {
	case s.asking <- struct{}{}:
	case <-s.work.Done():
		return
	}
	defer func() { <-s.asking }()
	var err error
	var prepared launch.Prepared
	if s.has(m, def) { // otherwise nobody knows; it is looked for
		_, err = launch.Environment(def)
		if err == nil {
			prepared, err = s.prepare(m, def)
		}
	} else {
		err = errors.New("its directory is not the one that was locked")
	}
	s.happened(m, func(now time.Time) {
		if m.Def() == def {
			m.Asked(s.failure(def, err), prepared.Answers, now)
			s.asksLoginAgain(m, now)
		}
	})
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
		c.fleet.askAgain(ask, now)
		ok = !anew || c.fleet.may(c.m, now)
	})
	return ok
}

// spec returns the specification of a session that continues what the service has
// interrupted, if anything. If that is not possible, the entry is an orphan.
func (c course) spec(prepared launch.Prepared, env []string) (session.Spec, error) {
	f, err := interrupted(c.def)
	if err != nil {
		return session.Spec{}, err
	}
	policy := c.def.Policy()
	if err := c.meet(&policy, prepared); err != nil {
		return session.Spec{}, err
	}
	c.mu.Lock()
	goesOn := c.m.GoesOn()
	c.mu.Unlock()
	t := launch.Ticket{
		Agent: c.def, Key: c.m.key, Env: env, Account: string(account.Of(env)), Policy: policy, Prepared: prepared, Interrupted: f, GoesOn: goesOn,
		StateDir: c.opt.StateDir, RuntimeDir: c.opt.RuntimeDir, Ours: c.opt.Ours,
	}
	spec, err := t.Spec()
	if err == nil && f != nil && spec.GoOn == "" {
		c.log.Warn("it is not known in which conversation an entry was interrupted", "agent", c.m.Name, "entry", f.DeliveryID)
		_, err = c.recover(context.Background(), c.m, c.def, session.Outcome{Why: hook.EndAPIFailure, Detail: f.Failure}, dealing{abandon: true})
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
	gates, err := c.stopHooks.Gates(c.m.key, prepared.StopHooks)
	p.Gated = len(gates) > 0
	return err
}

// interrupted returns the entry in flight of an agent without a session, if a
// failure that passes has ended its turn; otherwise nil.
func interrupted(c *config.Agent) (*inbox.InFlight, error) {
	f, err := queue.InFlight(c)
	if err != nil || f == nil || !agent.Passing(f.Failure) {
		return nil, err
	}
	return f, nil
}

// reclaimEvery is how often disk space is freed while a session lives: one that is
// never idle may live for a year.
const reclaimEvery = 10 * time.Minute

// follow follows a live session to its end. If its shim's last report has no
// outcome, the shim died, and what it left is ended.
func (c course) follow(live session.Live) session.Outcome {
	var last session.Report
	reclaim := time.NewTicker(reclaimEvery)
	defer reclaim.Stop()
	for {
		select {
		case r, open := <-live.Reports():
			switch {
			case !open && last.Outcome != nil:
				return *last.Outcome
			case !open:
				if _, err := session.SweepLeftovers(context.Background(), c.opt.StateDir, c.m.Name, sweepGrace); err != nil {
					c.log.Warn("cannot end all that a dead session left", "agent", c.m.Name, "err", err)
				}
				c.settled()
				return shimDied(last)
			}
			if last = r; r.Outcome == nil {
				c.reported(r)
			} else {
				c.happened(c.m, func(now time.Time) {
					c.m.Answers(r.Answers)
					c.spent(r.Spent, now)
				})
			}
		case <-reclaim.C:
			c.reclaim(c.m, c.def)
		}
	}
}

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

// ended deals with what a session left, and tells the agent of its end.
func (c course) ended(b launched, o session.Outcome) {
	c.mu.Lock()
	how := dealing{poison: c.m.Poisonous(o, time.Now()), cancel: c.m.Cancels()}
	c.mu.Unlock()
	how.abandon = c.conversed(b.spec, o)
	outcome, err := c.recover(context.Background(), c.m, c.def, o, how)
	c.outgrown(b.spec, outcome)
	c.learn(o)
	l, folders := queue.LookInto(c.def), claim.Folders(c.def)
	if o.Loss != nil && folders != nil {
		o.Loss = queue.Recheck(c.def, *o.Loss)
	}
	end := agent.End{
		Outcome: o, Left: l.Err != nil || hasWork(l.Depth), Queued: l.Depth.Entries, Names: l.Depth.Names, Folders: folders,
		Poison: how.poison, Unrecovered: c.failure(c.def, err), Answers: b.answers,
	}
	c.logEnd(o)
	if err != nil {
		c.log.Error("cannot deal with the entry in flight yet", "agent", c.m.Name, "err", err)
	}
	c.happened(c.m, func(now time.Time) {
		c.m.live = nil
		end.Parks = c.judged(o, account.ZoneOf(b.spec.Env), now)
		c.m.Ended(end, now, agent.Roll())
		c.m.cancels(cancelled{outcome, err})
	})
}

// conversed forgets a conversation that does not exist: its first session never
// began, or the client has deleted it or cannot read it. It reports whether the
// latter is the case.
func (c course) conversed(spec session.Spec, o session.Outcome) (deleted bool) {
	deleted = launch.NoConversation(spec, o)
	if !deleted && (o.Bound || spec.Resume != "") {
		return false
	}
	if err := launch.Forget(c.opt.StateDir, c.m.key); err != nil {
		c.log.Warn("cannot forget a conversation", "agent", c.m.Name, "err", err)
	}
	if deleted {
		c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text("the client has no conversation " + spec.Resume + "; the next session begins a new one")})
		c.log.Warn("the conversation is gone; the next session begins a new one", "agent", c.m.Name, "conversation", spec.Resume)
	}
	return deleted
}

// outgrown forgets a conversation that has become too full, unless an entry goes on in
// it whose turn the service has ended.
func (c course) outgrown(spec session.Spec, outcome inbox.Outcome) {
	c.mu.Lock()
	full := c.m.Full()
	c.mu.Unlock()
	if full == "" || outcome == inbox.Kept {
		return
	}
	if err := launch.Forget(c.opt.StateDir, c.m.key); err != nil {
		c.log.Warn("cannot forget a conversation", "agent", c.m.Name, "err", err)
		return
	}
	c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text(full)})
}

// learn remembers the Stop hooks that continued the client in a session.
func (c course) learn(o session.Outcome) {
	known := slices.DeleteFunc(slices.Clone(o.Gates), func(command string) bool { return command == "" })
	anew, err := c.stopHooks.Learn(c.m.key, known, time.Now())
	if err != nil {
		c.log.Warn("cannot remember a Stop hook", "agent", c.m.Name, "err", err)
	}
	for _, command := range anew {
		c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.StopHook, Reason: "it had the client go on, or stop, where heartbeat had not", Detail: foreign.Text(command)})
		c.log.Warn("a Stop hook that is not heartbeat's had the client go on, or stop", "agent", c.m.Name, "hook", command)
	}
}

// judged takes what a session's end says of its account. Where that is to blame,
// it returns what follows for the agent. zone is that of its client.
func (c course) judged(o session.Outcome, zone *time.Location, now time.Time) *agent.Parking {
	f := &c.fleet
	if o.Acknowledged > c.m.Reported().Acknowledged {
		c.fleet.hasDone(c.m, now)
	}
	if !agent.OfAccount(o) {
		c.fleet.declines(c.m, now)
		return nil
	}
	failure := account.Failure{Why: agent.Describe(o), Person: agent.NeedsPerson(o)}
	if r := o.Refused; r != nil && agent.Limited(o) {
		failure.Reset = account.Evidence{Told: r.Told, Written: r.Written, Limits: r.Limits, Zone: zone}.Reset(now)
	}
	p, ask := f.accounts.Failed(c.m.Name, failure, now, agent.Roll())
	c.records.note(journal.Event{
		Agent: c.m.Name, Kind: journal.Refused, Reason: foreign.Text(p.Reason), Until: p.Until, Source: string(p.Source),
		Detail: foreign.Text(told(o)),
	})
	if p.All {
		f.parkAll(c.m, p, now)
	}
	c.fleet.askAgain(ask, now)
	return new(parking(p))
}

// told is what the client said of a limit, in words for people.
func told(o session.Outcome) string {
	if o.Refused == nil {
		return ""
	}
	return o.Refused.Told
}

func (c course) logEnd(o session.Outcome) {
	log := c.log.With("agent", c.m.Name, "why", agent.Describe(o), "acknowledged", o.Acknowledged)
	switch o.Why {
	case hook.EndDrained, hook.EndReleased, hook.EndFinished, hook.EndShutdown:
		log.Info("session ended")
	default:
		if o.Screen != "" {
			log = log.With("screen", o.Screen)
		}
		log.Warn("session ended")
	}
}
