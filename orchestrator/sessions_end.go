package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
)

// ended deals with what a session left, and tells the agent of its end.
func (c course) ended(b launched, o session.Outcome) {
	c.mu.Lock()
	how := dealing{poison: c.m.Poisonous(o, c.opt.Now()), cancel: c.m.Cancels()}
	c.mu.Unlock()
	how.abandon = c.conversed(b.spec, o)
	found, err := c.orphans.recover(context.Background(), c.m, c.def, o, how)
	c.outgrown(b.spec, found.Outcome)
	c.learn(b.spec.Session, o)
	l, folders := queue.LookInto(c.def), claim.Folders(c.def)
	if o.Loss != nil && folders != nil {
		o.Loss = queue.Recheck(c.def, *o.Loss)
	}
	end := agent.End{
		Outcome: o, Left: l.Err != nil || hasWork(l.Depth), Queued: l.Depth.Entries, Names: l.Depth.Names, Folders: folders,
		Poison: how.poison, Exhausted: exhausted(found, c.def), Unrecovered: c.failure(c.def, err), Answers: b.answers,
		Fix: launch.Remedy(c.def, c.opt.StateDir, o),
	}
	c.logEnd(o)
	if err != nil {
		c.log.Error("cannot deal with the entry in flight yet", "agent", c.m.Name, "err", err)
	}
	c.happened(c.m, func(now time.Time) {
		c.m.live = nil
		end.Parks = c.judged(o, end.Fix, account.ZoneOf(b.spec.Env), now)
		c.m.Ended(end, now, agent.Roll())
		c.m.cancels(cancelled{found.Outcome, err})
	})
	if end.Parks != nil { // a run that knows nothing of it has each agent refused once more
		c.opt.Store.Pay(accountsKept)
	}
}

// conversed forgets a conversation that does not exist: its first session never
// began, or the client has deleted it or cannot read it. It reports whether the
// latter is the case.
func (c course) conversed(spec session.Spec, o session.Outcome) (deleted bool) {
	deleted = launch.NoConversation(spec, o)
	if !deleted && (o.Bound || spec.Resume != "") {
		return false
	}
	c.forget(spec)
	if deleted {
		c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text("the client has no conversation " + spec.Resume + "; the next session begins a new one")})
		c.log.Warn("the conversation is gone; the next session begins a new one", "agent", c.m.Name, "conversation", spec.Resume)
	}
	return deleted
}

// forget has nothing go on any more in the conversation that a session had.
func (c course) forget(spec session.Spec) {
	conversation := cmp.Or(spec.Resume, spec.Session)
	if err := c.desk.ConversationGone(c.m.key, conversation); err != nil {
		c.log.Warn("cannot forget a conversation", "agent", c.m.Name, "err", err)
	}
	c.opt.Store.Keep(fmt.Sprintf("that agent %q does not go on in conversation %s", c.m.Name, conversation), func() error {
		return launch.Forget(c.opt.Store, c.m.key, conversation)
	})
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
	c.forget(spec)
	c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text(full)})
}

// learn remembers the Stop hooks that continued the client in a session.
func (c course) learn(id string, o session.Outcome) {
	known := slices.DeleteFunc(slices.Clone(o.Gates), func(command string) bool { return command == "" })
	if len(known) == 0 {
		return
	}
	c.opt.Store.Keep(fmt.Sprintf("which Stop hooks have continued the client of agent %q in session %s", c.m.Name, id), func() error {
		var anew []string
		err := c.opt.Store.Write(context.Background(), func(change *store.Change) (err error) {
			anew, err = stophooks.Learn(change, c.m.key, known, c.opt.Now())
			return err
		})
		if err == nil {
			c.tellHooks(anew)
		}
		return err
	})
}

// tellHooks tells of Stop hooks that were not known.
func (c course) tellHooks(anew []string) {
	for _, command := range anew {
		c.records.note(journal.Event{Agent: c.m.Name, Kind: journal.StopHook, Reason: "it made the client continue, or stop, where heartbeat had not", Detail: foreign.Text(command)})
		c.log.Warn("a Stop hook that is not heartbeat's made the client continue or stop", "agent", c.m.Name, "hook", command)
	}
}

// judged takes what a session's end says of its account. Where that is to blame,
// it returns what follows for the agent. zone is that of its client.
func (c course) judged(o session.Outcome, fix string, zone *time.Location, now time.Time) *agent.Parking {
	f := &c.fleet
	if o.Acknowledged > c.m.Reported().Acknowledged {
		c.fleet.hasDone(c.m, now)
	}
	if !agent.OfAccount(o) {
		c.fleet.declines(c.m, now)
		return nil
	}
	failure := account.Failure{Why: agent.Describe(o), Person: agent.NeedsPerson(o), Fix: fix}
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
	c.fleet.askAgain(ask)
	return new(parking(p, now))
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
	if o.Why.IsMeant() {
		log.Info("session ended")
		return
	}
	if o.Screen != "" {
		log = log.With("screen", o.Screen)
	}
	log.Warn("session ended")
}
