package agent

import (
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// What a person does to a live session.

// The reasons of sessions that a person has ended.
const (
	FinishRestarted = "restarted by a person"
	FinishCancelled = "cancelled by a person"
)

// Restart ends the live session after its turn or, with now, at once: remaining
// work starts another one. It returns false if there is none.
func (a *Agent) Restart(now bool) bool {
	if a.life.is != Live {
		return false
	}
	a.note(journal.Event{Kind: journal.Restarted, Reason: "by a person", Session: a.life.session})
	a.Finish(FinishRestarted)
	if now {
		a.order(session.Order{Stop: true, Finish: FinishRestarted})
	}
	return true
}

// Cancel ends the present turn and gives up its entry or, with again, queues it once more.
// If only is not "", it must be the id or the delivery id of that entry. Cancel returns the
// entry, nil in a turn without one; if there is nothing to cancel, it returns why. It is
// carried out once Cancels returns nil.
func (a *Agent) Cancel(only string, again bool) (work *hook.Work, why string) {
	work, why = a.cancellable()
	if why != "" {
		return nil, why
	}
	if only != "" && (work == nil || only != work.ID && only != work.DeliveryID) {
		return nil, "entry " + only + " is not in flight"
	}
	c := &inbox.Cancellation{Again: again}
	if work != nil {
		c.Delivery = work.DeliveryID
	}
	a.note(journal.Event{Kind: journal.Cancelled, Reason: "by a person", Detail: entryText(c), Session: a.life.session})
	a.life.cancels = c
	if a.life.is == None {
		a.life.is = Recovering
		return work, ""
	}
	a.order(session.Order{Cancel: &session.Cancel{Delivery: c.Delivery, Again: again}, Finish: FinishCancelled})
	return work, ""
}

// cancellable returns the entry in flight, nil in a turn without one; or why there is
// nothing to cancel.
func (a *Agent) cancellable() (work *hook.Work, why string) {
	switch l := a.life; {
	case l.is == Starting, l.is == Live && l.last.Work == nil && l.last.Phase == hook.Starting: // it has not said yet what it was given
		return nil, "its session is only just starting"
	case l.is == Recovering:
		return nil, "what its last session had in flight is being recovered"
	case l.is == Live && l.last.Work == nil && l.last.Phase == hook.Waiting:
		return nil, "no turn runs: its session waits for work"
	case l.is == Live:
		return l.last.Work, ""
	case a.Owes():
		return nil, "what its last session had in flight could not be recovered yet"
	case a.past.left.inFlight == nil:
		return nil, "it has no session, and nothing is in flight"
	case a.place.is != Ours:
		return nil, "its directory is not the one that was locked"
	}
	return a.past.left.inFlight, ""
}

// Cancels returns what a person has asked to cancel while that is not carried out yet, or
// nil.
func (a *Agent) Cancels() *inbox.Cancellation { return a.life.cancels }

// overtakes reports whether a session is past the entry that is to be cancelled.
func overtakes(r session.Report, c *inbox.Cancellation) bool {
	if c.Delivery == "" {
		return r.Work != nil || r.Phase == hook.Waiting
	}
	return r.Work == nil || r.Work.DeliveryID != c.Delivery
}

// overtaken drops the wish to cancel: the entry was already done.
func (a *Agent) overtaken() {
	c := a.life.cancels
	a.note(journal.Event{Kind: journal.Cancelled, Reason: "too late: it had finished", Detail: entryText(c), Session: a.life.session})
	a.life.cancels = nil
}

func entryText(c *inbox.Cancellation) foreign.Text {
	if c.Delivery == "" {
		return "a turn without an entry"
	}
	return foreign.Text("entry " + c.Delivery)
}
