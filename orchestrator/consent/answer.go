package consent

import (
	"context"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
)

// Why a request needs no answer any more.
const (
	agentRemoved  = "the agent was removed"
	agentReplaced = "the agent was replaced"
)

// Ask files the request of an agent's session and returns at once: with the answer, if a
// rule gives it. The request is about the entry in flight if the session was given that
// entry.
func (k *Keeper) Ask(ctx context.Context, cfg *config.Agent, r approval.Request) (approval.Request, error) {
	if flight, err := queue.InFlight(cfg); err == nil && flight != nil && k.desk.Genuine(cfg, r.Key, flight) { // it may have changed since
		r.Entry = flight.DeliveryID
	}
	return k.file(ctx, r, cfg.Approvals)
}

// file files a request, and looks at the register if the request is new.
func (k *Keeper) file(ctx context.Context, r approval.Request, rules config.Approvals) (approval.Request, error) {
	now := k.opt.Now()
	r, err := k.opt.Register.Ask(ctx, r, rules, now)
	if err == nil && r.At.Equal(now) {
		k.note(r)
		k.Look(ctx)
	}
	return r, err
}

// Answer files the answer to a request, and waits a moment until the agent has it. Callers
// have made sure that the answer comes from a person.
func (k *Keeper) Answer(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	r, err := k.opt.Register.Answer(ctx, id, a, k.opt.Now())
	if err != nil {
		return r, err
	}
	k.note(r)
	k.Look(ctx)
	k.Wait(answerPatience, k.of(r)...)
	k.checkAgain(r)
	return r, nil
}

// NeedsToken reports whether only who has a token may answer a request, as the fleet's file
// says now (approvals: {by: page}). A request of an agent that the file does not have needs
// one where any agent's does.
func NeedsToken(f *config.Fleet, r approval.Request) bool {
	if a := f.Agent(r.Agent); a != nil {
		return a.Approvals.ByPage
	}
	return ByPage(f)
}

// ByPage reports whether an agent's requests are answered only by who has a token.
func ByPage(f *config.Fleet) bool {
	return slices.ContainsFunc(f.Agents, func(a *config.Agent) bool { return a.Approvals.ByPage })
}

// NeedsToken is NeedsToken of a request in the register.
func (k *Keeper) NeedsToken(id string) bool {
	r, err := k.opt.Register.Find(id)
	return err == nil && NeedsToken(k.opt.Fleet.Declared(), r) // answering it fails otherwise
}

// of returns the agent that made a request, if it is still there: one, or none.
func (k *Keeper) of(r approval.Request) []Agent {
	return slices.DeleteFunc(k.opt.Fleet.Agents(), func(a Agent) bool { return a.Now().Key != r.Key })
}

// checkAgain continues the check that waits for an answer.
func (k *Keeper) checkAgain(r approval.Request) {
	for _, a := range k.of(r) {
		a.CheckAgain()
	}
}

// Withdraw ends the requests that an agent made for an entry that is gone.
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

// settle ends the requests for which gone returns a reason, and the overdue ones.
func (k *Keeper) settle(ctx context.Context, gone func(approval.Request) string) {
	k.ended(k.opt.Register.Settle(ctx, gone, k.opt.Now()))
}

// ended writes ended requests to the journal, and continues the checks that waited for them.
func (k *Keeper) ended(ended []approval.Request, err error) {
	if err != nil {
		k.opt.Log.Warn("cannot end approvals", "err", err)
	}
	for _, r := range ended {
		k.note(r)
		k.checkAgain(r)
	}
}

// rename updates the agents' names in open requests. It reports whether any had changed.
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

// undeclared returns why a request needs no answer: the file no longer declares its agent.
// "" means that it does.
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
	case k.opt.Fleet.Declared().Agent(r.Agent) != nil: // another run may have that agent
		return ""
	}
	return agentRemoved
}

// note writes what has become of a request to the journal.
func (k *Keeper) note(r approval.Request) {
	e := event(r)
	k.opt.Note(e)
	k.opt.Log.Info("approval "+e.State, "agent", r.Agent, "approval", r.ID, "why", e.Reason.String())
}

// event says what has become of a request: when, by whom, and why.
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
