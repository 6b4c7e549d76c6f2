package consent

import (
	"context"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
)

// Why nobody needs what an agent has asked for.
const (
	agentRemoved  = "the agent was removed"
	agentReplaced = "the agent was replaced"
)

// Ask files what the session of an agent asks for, and returns at once: with the answer,
// where a rule knows it. The request is about the entry in flight, if that is what the
// session was given.
func (k *Keeper) Ask(ctx context.Context, cfg *config.Agent, r approval.Request) (approval.Request, error) {
	if flight, err := queue.InFlight(cfg); err == nil && flight != nil && k.desk.Genuine(r.Key, flight) { // newer than the report
		r.Entry = flight.DeliveryID
	}
	return k.file(ctx, r, cfg.Approvals)
}

// file files a request, and looks if it is a new one.
func (k *Keeper) file(ctx context.Context, r approval.Request, rules config.Approvals) (approval.Request, error) {
	now := time.Now()
	r, err := k.opt.Register.Ask(ctx, r, rules, now)
	if err == nil && r.At.Equal(now) {
		k.note(r)
		k.Look(ctx)
	}
	return r, err
}

// Answer files what somebody says to a request, and waits a moment until the agent has
// it. Callers have made sure that it is a person.
func (k *Keeper) Answer(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	r, err := k.opt.Register.Answer(ctx, id, a, time.Now())
	if err != nil {
		return r, err
	}
	k.note(r)
	k.Look(ctx)
	k.Wait(answerPatience, k.of(r)...)
	k.checkAgain(r)
	return r, nil
}

// of returns the agents that a request is of: one, or none.
func (k *Keeper) of(r approval.Request) []Agent {
	return slices.DeleteFunc(k.opt.Fleet.Agents(), func(a Agent) bool { return a.Now().Key != r.Key })
}

// checkAgain has the check go on that waits for an answer.
func (k *Keeper) checkAgain(r approval.Request) {
	for _, a := range k.of(r) {
		a.CheckAgain()
	}
}

// Withdraw ends the requests that an agent has made for an entry which is gone.
func (k *Keeper) Withdraw(ctx context.Context, key, delivery, why string) {
	if delivery == "" {
		return
	}
	k.settle(ctx, func(r approval.Request) string {
		if r.Key == key && r.Entry == delivery {
			return why
		}
		return ""
	})
	k.LookIfOpen(ctx)
}

// settle ends requests, and those that nobody has answered in time.
func (k *Keeper) settle(ctx context.Context, gone func(approval.Request) string) {
	k.ended(k.opt.Register.Settle(ctx, gone, time.Now()))
}

// ended writes down that requests have ended, and has their entries checked again.
func (k *Keeper) ended(ended []approval.Request, err error) {
	if err != nil {
		k.opt.Log.Warn("cannot end approvals", "err", err)
	}
	for _, r := range ended {
		k.note(r)
		k.checkAgain(r)
	}
}

// rename gives the open requests the names that their agents have now. It reports whether
// any had another one.
func (k *Keeper) rename(ctx context.Context, open []approval.Request) (renamed bool) {
	for _, a := range k.opt.Fleet.Agents() {
		now := a.Now()
		if now.Removed || !slices.ContainsFunc(open, func(r approval.Request) bool { return r.Key == now.Key && r.Key != "" && r.Agent != now.Name }) {
			continue
		}
		if err := k.opt.Register.Renamed(ctx, now.Key, now.Name); err != nil {
			k.opt.Log.Warn(err.Error())
		}
		renamed = true
	}
	return renamed
}

// undeclared is why nobody needs an answer: the file has no such agent any more.
func (k *Keeper) undeclared(r approval.Request) string {
	replaced := false
	for _, a := range k.opt.Fleet.Agents() {
		switch now := a.Now(); {
		case now.Removed:
		case now.Key == r.Key:
			return ""
		case now.Name == r.Agent && now.Key != "":
			replaced = true
		}
	}
	switch {
	case replaced:
		return agentReplaced
	case k.opt.Fleet.Declared().Agent(r.Agent) != nil: // another run may have it
		return ""
	}
	return agentRemoved
}

// note writes down what has become of a request.
func (k *Keeper) note(r approval.Request) {
	e := event(r)
	k.opt.Note(e)
	k.opt.Log.Info("approval "+e.State, "agent", r.Agent, "approval", r.ID, "why", e.Reason.String())
}

// event says what has become of a request: when, who, and why.
func event(r approval.Request) journal.Event {
	e := journal.Event{Agent: r.Agent, Kind: journal.Approval, State: string(r.State), Approval: r.ID, Session: r.Session, Detail: foreign.Text(r.Text())}
	if r.Waits() {
		e.Until = r.Until
		return e
	}
	if r.Needless != "" {
		e.State = string(approval.Withdrawn)
	}
	e.Reason = foreign.Text(r.Answered())
	return e
}
