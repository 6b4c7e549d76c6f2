package session

import (
	"context"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/ptyrun"
)

const (
	// breath is the minimum time between two looks, however often something
	// changes.
	breath = 10 * time.Millisecond
	// attentive is how long a shim waits between looks while a session works, and
	// drowsy while one waits: meanwhile only time passes, or a hook is killed.
	// Everything else wakes the shim.
	attentive = 200 * time.Millisecond
	drowsy    = time.Second
	// ruled is the same for a session that is about to be ended.
	ruled = 50 * time.Millisecond
)

// patience returns how long the shim may go without a look.
func patience(r *hook.Record) time.Duration {
	switch {
	case r.Ruling != nil || r.Phase == hook.Settling:
		return ruled
	case r.Phase == hook.Waiting || r.Phase == hook.Background || r.Phase == hook.Checking:
		return drowsy
	}
	return attentive
}

// ending is why and how the session is ended.
type ending struct {
	why    hook.End
	detail string
	// abandon acknowledges the entry in flight first (background-timeout).
	abandon bool
	// exited is true if the client ended by itself.
	exited bool
	// loss is what was lost with the queue's folder, for EndLost.
	loss *Loss
}

// lost returns what was lost with the session's ground.
func (s *shim) lost(what string) *Loss {
	s.adrift = true
	c := s.ground.census
	return &Loss{What: what, Queued: c.queued, More: c.more, IDs: c.names, InFlight: s.record.Work}
}

// follow watches the session until it ends or has to be ended.
func (s *shim) follow(ctx context.Context) ending {
	changed, stop := s.live.Watch()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time // of the last look
	soon := func() { timer.Reset(breath - time.Since(last)) }
	for {
		select {
		case <-s.term.child.Done():
			return ending{exited: true}
		case <-ctx.Done():
			return ending{why: hook.EndShutdown, detail: "the shim was told to end"}
		case o, alive := <-s.orders:
			if !alive {
				return ending{why: hook.EndShutdown, detail: "the scheduler is gone"}
			}
			if o.Cancel != nil && !s.cancels(ctx, o) {
				continue
			}
			if o.Stop || o.Cancel != nil {
				return ending{why: o.finishes(), detail: o.Finish}
			}
			if o.Finish != "" {
				// Not final: judge decides when it is carried out.
				s.update(ctx, func(r *hook.Record) { r.End(o.finishes(), o.Finish, time.Now()) })
			}
			if o.HandBack {
				s.handBack(ctx)
			}
			if o.Yield {
				s.asked = time.Now()
				s.update(ctx, func(r *hook.Record) { r.Yield = true })
			}
			soon()
		case <-changed:
			soon()
		case <-s.peopleChanged():
			soon()
		case w := <-s.wishes.made:
			if err := s.out.Encode(Report{At: time.Now(), Wish: &w}); err != nil {
				s.log.Debug("cannot pass a wish on", "err", err)
			}
		case a := <-s.bill.written:
			s.take(a, time.Now())
		case <-timer.C:
			last = time.Now()
			if e, ok := s.look(ctx, last); ok {
				return e
			}
			timer.Reset(patience(s.record))
		}
	}
}

// look reads the record if it changed, reports, and asks the policy.
func (s *shim) look(ctx context.Context, now time.Time) (ending, bool) {
	s.reload()
	s.mend(ctx, now)
	s.keepListening(now)
	s.keepTalk(now)
	s.notePeople(ctx, now)
	aliveAt := s.meters.life.at(now, s.term.child, s.record)
	s.meters.check.look(s.live.InFlight())
	s.meters.signs.look(s.live, s.record, now)
	s.spend(now)
	s.meters.course.read(s.record, now)
	s.seen.see(s.record, s.does(aliveAt, now), now)
	f := s.facts(aliveAt, now)
	s.meters.silent = time.Time{}
	if last := f.lived(s.spec.StallTimeout); s.record.Phase == hook.Turn && f.tool == nil && now.Sub(last) >= longSilence {
		s.meters.silent = last
	}
	s.report(now)
	if what := s.ground.look(now); what != "" {
		return ending{why: hook.EndLost, loss: s.lost(what)}, true
	}
	s.ground.count(s.live, &s.seen, s.record.Acknowledged, now)
	before := spoken(s.record)
	if by := s.record.CutShort(&s.stops); by != "" {
		s.takeBack(ctx, by, before)
		return ending{}, false
	}
	if by := s.record.PassedOver(&s.stops); by != nil {
		s.update(ctx, func(r *hook.Record) { r.AddGates(by) })
		return s.rule(ctx, verdict{end: hook.EndRunaway, detail: hook.NameHooks(by) + " makes the client continue, and ours is not called"}, before, now)
	}
	if what := s.overBudget(now); what != "" {
		return s.rule(ctx, verdict{end: hook.EndOverBudget, detail: "the entry has cost " + what}, before, now)
	}
	v := judge(f, s.spec.limits())
	switch {
	case v.settled:
		s.settled(ctx, before)
	case v.leave:
		s.update(ctx, func(r *hook.Record) {
			if spoken(r) == before { // else there is nothing to leave
				r.Enter(hook.Unattended, now)
			}
		})
	case v.afterTurn:
		s.update(ctx, func(r *hook.Record) { r.End(v.end, v.detail, now) })
	case v.end != "":
		return s.rule(ctx, v, before, now)
	}
	return ending{}, false
}

// does says what the session does while it has no entry.
func (s *shim) does(aliveAt, now time.Time) doing {
	switch {
	case s.record.Phase != hook.Waiting:
	case now.Sub(aliveAt) >= 2*client.Claude.Terminal.SpinnerFor:
		return rests
	case s.waits():
		return waits
	}
	return acts
}

// waits reports whether the hook lives that the record says waits.
func (s *shim) waits() bool { return s.record.Waiter.PID != 0 && Alive(s.record.Waiter) }

// facts are what is known now; aliveAt is the last sign of life other than hook events.
func (s *shim) facts(aliveAt, now time.Time) facts {
	return facts{
		now: now, seen: s.seen, ruling: s.record.Ruling, attached: s.people.attached, typed: s.people.typed, asked: s.asked,
		waiterGone: s.record.Waiter.PID != 0 && !Alive(s.record.Waiter),
		waits:      s.waits(),
		checking:   s.meters.check.now != nil,
		quietSince: s.meters.quiet.since(now, s.term.child),
		aliveAt:    aliveAt,
		signed:     s.meters.signs.at(),
		deafSince:  s.deafSince(now),
		unseen:     s.hooks.unseen.Load(),
		stopped:    s.stopped(),
		untold:     s.untold(),
		tool:       s.meters.course.tool(),
		toolEnded:  s.meters.course.ended,
	}
}

// moment is what hooks have said so far. A waiting hook hands over an entry without
// a new event.
type moment struct {
	events int
	phase  hook.Phase
	since  int64
}

func spoken(r *hook.Record) moment { return moment{r.Events, r.Phase, r.Since.UnixNano()} }

// rule makes a verdict final, unless a hook has spoken since
// the moment that was judged: then the next look decides again.
func (s *shim) rule(ctx context.Context, v verdict, before moment, now time.Time) (ending, bool) {
	changed := false
	s.update(ctx, func(r *hook.Record) {
		if changed = spoken(r) != before; changed {
			return
		}
		r.End(v.end, v.detail, now)
		r.Ruling.Final = true
		if !v.abandon {
			r.Enter(hook.Ending, now)
		}
	})
	if changed {
		return ending{}, false
	}
	return ending{why: v.end, detail: v.detail, abandon: v.abandon}, true
}

// report tells the orchestrator what changed.
func (s *shim) report(now time.Time) {
	s.lookAtServers()
	told, _ := s.live.Told()
	r := Report{
		At: now, Phase: s.record.Phase, Acknowledged: s.record.Acknowledged, Work: s.record.Work, Told: told, Spent: s.bill.counter.All(),
		Attached: s.record.Attached, Hush: s.record.Hush(), Checking: s.meters.check.now, Answered: s.meters.course.answered, Tool: s.meters.course.tool(), Silent: s.meters.silent, Said: s.meters.signs.last,
		Denied: s.meters.course.denied, Servers: s.servers.told(), Strays: s.meters.course.strays,
	}
	r.Answers = s.freshAnswers()
	if ruling := s.record.Ruling; ruling != nil && r.Phase == hook.Ending {
		r.Why = (&Outcome{Why: ruling.Why, Detail: ruling.Detail}).String()
	}
	if r.Phase == s.said.Phase && r.Why == s.said.Why && r.Acknowledged == s.said.Acknowledged && sameWork(r.Work, s.said.Work) && r.Checking == s.said.Checking &&
		r.Attached == s.said.Attached && r.Hush.Equal(s.said.Hush) &&
		r.Told == s.said.Told && r.Spent == s.said.Spent && r.Answered == s.said.Answered && sameTool(r.Tool, s.said.Tool) && r.Silent.Equal(s.said.Silent) &&
		r.Said == s.said.Said && len(r.Answers) == 0 && slices.Equal(r.Denied, s.said.Denied) && sameServers(r.Servers, s.said.Servers) && slices.Equal(r.Strays, s.said.Strays) {
		return
	}
	s.said = r
	if err := s.out.Encode(r); err != nil {
		s.log.Debug("cannot report", "err", err)
	}
}

func sameServers(a, b *[]Server) bool { return a == b || a != nil && b != nil && slices.Equal(*a, *b) }

func sameTool(a, b *Tool) bool { return a == b || a != nil && b != nil && *a == *b }

// longSilence is how long a turn may go without a sign of life until that is told.
const longSilence = 30 * time.Second

// limited reports whether the session is ruled to end at a limit of its account.
func (s *shim) limited() bool {
	r := s.record.Ruling
	return r != nil && r.Why == hook.EndAPIFailure && r.Detail == client.Claude.Hooks.Limited
}

// untold reports whether the client may still tell when the limit ends that it has
// run into: its record and its figures come after the hook.
func (s *shim) untold() bool {
	if !s.limited() {
		return false
	}
	line, _ := s.live.Told()
	figures := line != nil && (!line.Limits.FiveHour.Resets.IsZero() || !line.Limits.SevenDay.Resets.IsZero())
	return s.meters.course.refused == nil || !figures
}

func sameWork(a, b *hook.Work) bool {
	return a == b || a != nil && b != nil && a.DeliveryID == b.DeliveryID && a.Attempt == b.Attempt && a.Iteration == b.Iteration
}

// Alive reports whether a process exists, and is not another one with its pid.
func Alive(p hook.Process) bool {
	start, err := ptyrun.StartTimeOf(p.PID)
	return err == nil && start == p.Start
}

// finish ends the client's whole tree and returns how the session ended.
func (s *shim) finish(ctx context.Context, e ending) *Outcome {
	inTurn := turnSince(s.record, time.Time{})
	if e.abandon {
		s.abandon(ctx)
	}
	if !e.exited {
		s.update(ctx, func(r *hook.Record) {
			now := time.Now()
			r.End(e.why, e.detail, now)
			r.Ruling.Final = true
			r.Enter(hook.Ending, now)
		})
		s.report(time.Now())
	}
	last := s.term.output.picture() // a client that is told to end clears it
	exit := s.term.child.End(context.WithoutCancel(ctx))
	s.answered()
	if e.exited {
		last = s.term.output.picture()
	}
	s.reload()
	if e.exited && s.stopped() {
		s.settled(ctx, spoken(s.record))
	}
	s.closeBill(time.Now(), turnSince(s.record, inTurn))
	s.heeds(ctx)
	o := s.outcome(e, exit, last)
	o.Untaken, o.Owes = s.untaken(exit), s.bill.owes()
	s.closeOutputs(o.String())
	s.update(ctx, func(r *hook.Record) {
		now := time.Now()
		r.End(o.Why, o.Detail, now)
		r.Enter(hook.Ended, now)
		r.ExitCode, r.EndedAt, r.Attached = o.ExitCode, now, 0
	})
	if err := s.keepOutcome(o); err != nil {
		s.log.Warn("cannot note how the session ended", "err", err)
	}
	if err := s.dropLeftover(); err != nil {
		s.log.Warn("cannot forget the session's processes", "err", err)
	}
	return o
}
