package main

import (
	"context"
	"fmt"

	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
)

type recoverCmd struct {
	Agent    string `arg:"" optional:"" help:"The agent." complete:"agent"`
	Inbox    string `placeholder:"PATH" help:"A queue that no agent declares." complete:"file"`
	OnOrphan string `placeholder:"POLICY" enum:",retry,deadletter,drop" default:"" help:"What happens to an entry that was started: retry, deadletter or drop. Without it, as declared, or deadletter."`
}

// Help implements kong's HelpProvider.
func (recoverCmd) Help() string {
	return `Recovers the entry that was in flight when its session ended. "heartbeat run" does
this when it starts; you need it only where heartbeat does not run. It refuses while
a session or "heartbeat run" lives in the directory.

Examples:

    heartbeat recover triage
    heartbeat recover triage --on-orphan retry
    heartbeat recover --inbox ~/old-agent/inbox.jsonl`
}

// recovered is what became of an entry.
type recovered struct {
	Outcome inbox.Outcome   `json:"outcome"`
	Entry   *inbox.InFlight `json:"entry"`
}

func (c recoverCmd) run(ctx context.Context, a *app) (result, error) {
	r, err := c.recovery(a)
	if err != nil {
		return nil, err
	}
	outcome, entry, err := queue.Recover(ctx, r)
	if err != nil {
		return nil, err
	}
	if c.Agent != "" && entry != nil && outcome == inbox.DroppedOrphan {
		c.withdraw(ctx, a, entry)
	}
	return recovered{outcome, entry}, nil
}

// withdraw ends what was asked for an entry that was dropped, and forgets what is kept of it.
func (c recoverCmd) withdraw(ctx context.Context, a *app, entry *inbox.InFlight) {
	f, err := a.knownFleet()
	if agent, found := a.agent(c.Agent); err == nil && found == nil {
		var kept orchestrator.Kept
		if kept, err = keptOf(f, agent); err == nil {
			kept.Forgets(agent, entry)
		}
	}
	dir := ""
	if err == nil {
		dir, err = owner.StateDir(f)
	}
	if err == nil {
		err = a.withdraw(ctx, f, dir, consent.Withdrawal{Agents: []string{c.Agent}, Entry: entry.DeliveryID, Why: "its prompt was dropped"})
	}
	if err != nil {
		a.warn(err.Error())
	}
}

func (c recoverCmd) recovery(a *app) (queue.Recovery, error) {
	policy := inbox.OrphanPolicy(c.OnOrphan)
	if (c.Agent == "") == (c.Inbox == "") {
		return queue.Recovery{}, usagef("heartbeat recover --help", "name either an agent or --inbox PATH")
	}
	if c.Inbox != "" {
		return queue.OfInbox(c.Inbox, policy)
	}
	agent, err := a.agent(c.Agent)
	if err != nil {
		return queue.Recovery{}, err
	}
	r := queue.OfAgent(agent, policy)
	f, err := a.knownFleet()
	if err == nil {
		var kept orchestrator.Kept
		kept, err = keptOf(f, agent)
		r.Ends = kept.Ends
	}
	return r, err
}

// outcomes say what the outcomes are for people.
var outcomes = map[inbox.Outcome]string{
	inbox.NothingToRecover:   "nothing to recover",
	inbox.StaleOrphanDeleted: "the entry was acknowledged already",
	inbox.Requeued:           "the entry is first in the queue again",
	inbox.DeadLettered:       "the entry is a dead letter now",
	inbox.DroppedOrphan:      "the entry was dropped",
	inbox.Repaired:           "a corrupt file was set aside and repaired",
	inbox.LeftChecking:       "the entry stays in flight until its check is done, which heartbeat run makes",
	inbox.LeftUnproven:       "the entry stays in flight for its next iteration, which heartbeat run begins",
}

// recoveredColumns is how much of the prompt is shown.
const recoveredColumns = 60

func (r recovered) text(p *page) {
	p.printf("%s", outcomes[r.Outcome])
	if r.Entry != nil {
		p.printf(" (%s, %s, attempt %s): %s", r.Entry.DeliveryID, string(r.Entry.State), fmt.Sprint(r.Entry.Attempt),
			shorten(foreign.Line(promptOf(r.Entry.RawLine)), recoveredColumns))
	}
	p.printf("\n")
}
