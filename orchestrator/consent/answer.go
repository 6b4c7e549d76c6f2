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
	"heartbeat/orchestrator/store"
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

// file files a request, and looks if the request is new.
func (k *Keeper) file(ctx context.Context, r approval.Request, rules config.Approvals) (asked approval.Request, err error) {
	filed := false
	err = k.change(ctx, func(c *store.Change) (err error) {
		asked, filed, err = approval.Ask(c, r, rules, k.opt.Now())
		return err
	})
	if err != nil {
		return r, err
	}
	if filed {
		k.note(asked)
		k.Look(ctx)
	}
	return asked, nil
}

// Answer files the answer to a request, and waits a moment until the agent has it. Callers
// have made sure that the answer comes from a person.
func (k *Keeper) Answer(ctx context.Context, id string, a approval.Answer) (r approval.Request, err error) {
	err = k.change(ctx, func(c *store.Change) (err error) {
		r, err = approval.Give(c, id, a, k.opt.Now())
		return err
	})
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

// NeedsToken is NeedsToken of a request by its id.
func (k *Keeper) NeedsToken(id string) bool {
	r, err := store.Get(context.Background(), k.opt.Store.Reader, func(v *store.View) (approval.Request, error) { return approval.Find(v, id) })
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

// Withdrawal is that what agents ask for, by their names, is not needed any more.
type Withdrawal struct {
	Agents []string `json:"agents"`
	Entry  string   `json:"entry,omitempty"` // a delivery id: what they ask for it alone
	Why    string   `json:"why"`
}

// Gone returns why a request is not needed; "": it is.
func (w Withdrawal) Gone(r approval.Request) string {
	if slices.Contains(w.Agents, r.Agent) && (w.Entry == "" || w.Entry == r.Entry) {
		return w.Why
	}
	return ""
}

// Settle ends the requests for which gone returns a reason, and the overdue ones.
func (k *Keeper) Settle(ctx context.Context, gone func(approval.Request) string) error {
	err := k.settle(ctx, gone)
	k.LookIfOpen(ctx)
	return err
}

// Withdraw ends the requests that an agent made for an entry that is gone.
func (k *Keeper) Withdraw(ctx context.Context, key, delivery, why string) {
	if delivery == "" {
		return
	}
	_ = k.Settle(ctx, func(r approval.Request) string { // it is logged, and looked at again
		if r.Key == key && r.Entry == delivery {
			return why
		}
		return ""
	})
}

// settle ends the requests for which gone returns a reason, and the overdue ones.
func (k *Keeper) settle(ctx context.Context, gone func(approval.Request) string) error {
	waiting, owed, err := k.read(ctx)
	if err != nil {
		k.opt.Log.Warn("cannot end approvals", "err", err)
		return err
	}
	now := k.opt.Now()
	return k.end(ctx, approval.Ends(waiting, owed, gone, now), now)
}

// end has requests end, writes that to the journal, and continues the checks that waited for
// them.
func (k *Keeper) end(ctx context.Context, ends []approval.End, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	var ended []approval.Request
	err := k.change(ctx, func(c *store.Change) (err error) {
		ended, err = approval.Settle(c, ends, now)
		return err
	})
	if err != nil {
		k.opt.Log.Warn("cannot end approvals", "err", err)
		return err
	}
	for _, r := range ended {
		k.note(r)
		k.checkAgain(r)
	}
	return nil
}

// rename updates the agents' names in open requests. It reports whether any had changed.
func (k *Keeper) rename(ctx context.Context, open []approval.Request) (renamed bool) {
	for _, a := range k.opt.Fleet.Agents() {
		now := a.Now()
		if now.Removed || !slices.ContainsFunc(open, func(r approval.Request) bool { return r.Key == now.Key && r.Key != "" && r.Agent != now.Name }) {
			continue
		}
		if err := k.change(ctx, func(c *store.Change) error { return approval.Renamed(c, now.Key, now.Name) }); err != nil {
			k.opt.Log.Warn(err.Error())
		}
		renamed = true
	}
	return renamed
}

// undeclared returns why a request needs no answer: the file no longer declares its agent.
// "" means that it does.
func (k *Keeper) undeclared() func(approval.Request) string {
	var agents []Standing
	for _, a := range k.opt.Fleet.Agents() {
		agents = append(agents, a.Now())
	}
	declared := k.opt.Fleet.Declared()
	return func(r approval.Request) string {
		_, why := whose(declared, agents, r)
		return why
	}
}

// whose returns which of the agents has made a request, or why that is none of them; both are
// empty if another run may have it.
func whose(declared *config.Fleet, agents []Standing, r approval.Request) (of *config.Agent, why string) {
	for _, a := range agents {
		switch {
		case a.Removed:
		case a.Key == r.Key, r.Key == "" && a.Name == r.Agent:
			return a.Declared, ""
		case a.Name == r.Agent && a.Key != "":
			why = agentReplaced
		}
	}
	if why == "" && declared.Agent(r.Agent) == nil {
		why = agentRemoved
	}
	return nil, why
}

// note writes what has become of a request to the journal.
func (k *Keeper) note(r approval.Request) {
	e := Event(r)
	k.opt.Note(e)
	k.opt.Log.Info("approval "+e.State, "agent", r.Agent, "approval", r.ID, "why", e.Reason.String())
}

// Event says what has become of a request: by whom, and why. It has no time.
func Event(r approval.Request) journal.Event {
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
