package consent

import (
	"context"
	"errors"
	"math"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// tend starts the work on an agent's requests. The caller holds looking.
func (k *Keeper) tend(ctx context.Context, a Agent) {
	if t := k.tended[a]; t != nil {
		t.again = true
		return
	}
	t := &tending{done: make(chan struct{})}
	k.tended[a] = t
	ctx = context.WithoutCancel(ctx)
	k.opt.Go(func() {
		defer close(t.done)
		for again := true; again; {
			err := k.tendTo(ctx, a)
			a.Tended(err)
			k.looking.Lock()
			if again, t.again = t.again, false; !again {
				delete(k.tended, a)
			}
			if err != nil {
				k.again = true
			}
			k.looking.Unlock()
		}
	})
}

// Tends reports whether work on an agent's requests is in progress.
func (k *Keeper) Tends(a Agent) bool {
	k.looking.Lock()
	defer k.looking.Unlock()
	return k.tended[a] != nil
}

// Wait waits until the work on the agents' requests is done, but no longer than patience.
func (k *Keeper) Wait(patience time.Duration, agents ...Agent) {
	clock := time.NewTimer(patience)
	defer clock.Stop()
	for _, a := range agents {
		k.looking.Lock()
		t := k.tended[a]
		k.looking.Unlock()
		if t == nil {
			continue
		}
		select {
		case <-t.done:
		case <-clock.C:
			return
		}
	}
}

// tendTo withdraws an agent's needless requests, sends the answers on their way and, if
// nothing else waits, lets the agent continue. After an error it has to be tried again.
func (k *Keeper) tendTo(ctx context.Context, a Agent) error {
	ctx, cancel := context.WithTimeout(ctx, tendPatience)
	defer cancel()
	now := a.Now()
	if now.Removed {
		return nil
	}
	if err := k.TendAsides(ctx, a); err != nil {
		return err
	}
	var failed, unsure error
	_ = k.settle(ctx, func(r approval.Request) string {
		if r.Key != now.Key {
			return ""
		}
		why, err := k.desk.Unneeded(now.Declared, now.Key, r)
		if failed = errors.Join(failed, err); r.Owes() {
			unsure = errors.Join(unsure, err)
		}
		return why
	})
	if failed != nil {
		k.opt.Log.Warn("cannot tell whether approvals are needed", "agent", now.Name, "err", failed)
	}
	if unsure != nil {
		return unsure
	}
	if err := k.tellAnswers(ctx, a, now); err != nil {
		k.opt.Log.Warn("cannot queue the answer to an approval; it is tried again", "agent", now.Name, "err", err)
		return err
	}
	waiting, _, err := k.read(ctx)
	if err == nil {
		now = a.Now()
		awaits(a, status.ApprovalOf(waiting, func(r approval.Request) bool { return r.Key == now.Key && now.holdsUp(r) }))
	}
	return errors.Join(err, failed)
}

// TendAsides brings an agent's entries that are set aside in line with the answers. After
// an error, which it logs, it has to be tried again.
func (k *Keeper) TendAsides(ctx context.Context, a Agent) error {
	now := a.Now()
	w, err := k.desk.Tend(ctx, now.Declared, now.Key)
	if err != nil {
		k.opt.Log.Warn("cannot handle approvals", "agent", now.Name, "err", err)
		return err
	}
	if len(a.Now().Aside) != len(w.Deliveries) || w.Returning > 0 || len(w.Applied) > 0 {
		a.Took(w)
	}
	return nil
}

// tellAnswers sends the answers that an agent does not have on their way. The answer to a
// request about an entry that has to be proven comes with that entry's next hand-over, which
// comes before anything else (package proving). Every other answer is queued.
func (k *Keeper) tellAnswers(ctx context.Context, a Agent, now Standing) error {
	_, owed, err := k.read(ctx)
	if err != nil {
		return err
	}
	for _, r := range owed {
		if r.Key != now.Key {
			continue
		}
		flight, err := queue.InFlight(now.Declared)
		switch {
		case err != nil:
			return err
		case flight != nil && flight.DeliveryID == r.Entry && k.desk.Demands(now.Declared, flight):
			k.route(a, r)
		default:
			err = k.tellAnswer(ctx, a, now.Declared, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// route leaves an answer to the next hand-over of the entry in flight.
func (k *Keeper) route(a Agent, r approval.Request) {
	k.looking.Lock()
	was := k.routed[r.ID]
	k.routed[r.ID] = true
	k.looking.Unlock()
	if !was {
		a.IsAnswered()
		a.CheckAgain()
	}
}

// AnswerPrefix begins the ids of entries that hand answers to agents.
const AnswerPrefix = "approval-"

// tellAnswer queues an answer in front of everything else, even if the queue is full. The
// entry does not have to be proven or approved.
func (k *Keeper) tellAnswer(ctx context.Context, a Agent, cfg *config.Agent, r approval.Request) error {
	l := inbox.Letter{ID: AnswerPrefix + r.ID, Source: "approval", Prompt: r.HandOver(), Idempotent: true, Most: math.MaxInt, Urgent: true}
	if cfg.Until != nil {
		if _, err := k.desk.Demand(cfg, "", l, nil); err != nil {
			return err
		}
	}
	begin, err := a.Append(ctx, cfg, l)
	if err != nil && !errors.Is(err, inbox.ErrDuplicate) {
		return err
	}
	if err := k.change(ctx, func(c *store.Change) error { return approval.Tell(c, r.ID) }); err != nil {
		return err
	}
	a.IsAnswered()
	if begin != nil {
		begin()
	}
	return nil
}

// Recall makes agents continue their conversations if an earlier run has queued an answer
// for them.
func (k *Keeper) Recall() {
	for _, a := range k.opt.Fleet.Agents() {
		if held, err := a.Holds(a.Now().Declared, AnswerPrefix); err == nil && held {
			a.IsAnswered()
		}
	}
}
