package agent

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// wish is what people and the configuration want of an agent.
type wish struct {
	// paused says that nothing may be started, by whom and until when.
	paused memory.Paused
	// awaits is the approval that it waits for, or nil. answered is since when the answer to
	// one is queued, which continues the conversation.
	awaits   *status.Approval
	answered time.Time
	aside    []string         // the entries that are set aside until a person answers, by delivery id
	asks     *status.Approval // the first request that waits while the agent works on, or nil
	// removed is true from the reload that removed it.
	removed bool
	// next is the definition in force from its next session on, or nil.
	next *config.Agent
	// predecessors counts the agents that still have its name or its directory.
	predecessors int
}

func (a *Agent) pausedReason() string { return "paused by " + status.WhoPaused(a.wish.paused.By) }

// Paused returns the agent's pause.
func (a *Agent) Paused() memory.Paused { return a.wish.paused }

// WasPaused continues a pause of an earlier run.
func (a *Agent) WasPaused(p memory.Paused) { a.wish.paused = p }

// Pause holds the agent until Resume or until the pause's own end; a live session
// ends after its turn. Of one that is paused already, see memory.Paused.Again.
func (a *Agent) Pause(asked memory.Paused) {
	a.wish.paused = a.wish.paused.Again(asked)
	a.note(journal.Event{Kind: journal.Paused, Reason: foreign.Text("by " + status.WhoPaused(asked.By)), Until: a.wish.paused.Until})
	a.Finish(a.pausedReason())
}

// pauseEnds ends a pause that was for a time.
func (a *Agent) pauseEnds() {
	a.wish.paused = memory.Paused{}
	a.note(journal.Event{Kind: journal.Resumed, Reason: "its pause is over"})
}

// Resume ends a pause, and everything else that keeps the agent from starting and that a person
// can end. It returns true if that was its account.
func (a *Agent) Resume(now time.Time) (parked bool) {
	was := a.Standing(now).State
	_, stays := a.Describe().Stays("")
	stays = stays && a.past.loss == nil && a.past.stuck == nil
	waited := a.OnAccount() || a.past.held.limited
	a.wish.paused = memory.Paused{}
	if !stays { // otherwise nothing is resumed
		a.note(journal.Event{Kind: journal.Resumed})
	}
	a.past.loss, a.past.stuck = nil, nil
	a.order(session.Order{HandBack: true})
	if a.past.client.held {
		a.past.client.passes = a.past.client.is.ID
		a.leaveClient("resumed by a person")
	}
	switch was {
	case status.Held, status.BackingOff, status.Parked:
		a.past.history = history{}
		a.follow(next{state: status.Idle, reason: "resumed by a person"})
	}
	return waited
}

// Removed reports whether a reload has removed it.
func (a *Agent) Removed() bool { return a.wish.removed }

// Remove removes the agent, after its turn if it is in one.
func (a *Agent) Remove() {
	a.wish.removed = true
	a.Finish(FinishRemoved)
}

// Gone reports whether it was removed and rests.
func (a *Agent) Gone() bool { return a.wish.removed && a.Rests() }

// Rests reports whether nothing is being done with it: neither a session nor a check has its
// directory.
func (a *Agent) Rests() bool { return a.life.is == None && !a.check.begun }

// Abandons reports whether it was removed and only a check is still in progress. Its verdict is
// of no use: the next owner of the directory begins another check.
func (a *Agent) Abandons() bool { return a.wish.removed && a.life.is == None && a.check.begun }

// Redefine gives the agent another definition, which comes into force once nothing
// is being done with it (Adopt); a session that would not end by itself makes way
// for it.
func (a *Agent) Redefine(def *config.Agent) {
	a.wish.next = def
	if a.def.Mode == hook.Persist {
		a.Finish(FinishChanged)
	}
}

// Adopt puts the next definition into force, if there is one and nothing is being done with the
// agent. Failures under the old definition do not count any more.
func (a *Agent) Adopt(now time.Time) bool {
	if a.wish.next == nil || a.life.is != None {
		return false
	}
	a.def, a.wish.next = a.wish.next, nil
	a.past.history = history{}
	a.queue.stale = true
	a.leaveClient(FinishChanged)
	a.past.client.probed = false // the definition may name another client
	if a.past.held.why != "" || a.past.blocked.why != "" || !deadline.Over(a.past.backOff.until, now) || a.OnAccount() {
		a.follow(next{state: status.Idle, reason: FinishChanged})
	}
	return true
}

// Expects counts another agent that still has its name or its directory.
func (a *Agent) Expects() { a.wish.predecessors++ }

// Succeeds says that one of those agents is gone. After the last one the agent takes over, and
// the entry in flight in its directory is recovered.
func (a *Agent) Succeeds() {
	if a.wish.predecessors--; !a.Expected() {
		a.TakeOver()
	}
}

// TakeOver begins an agent that a reload has added.
func (a *Agent) TakeOver() {
	a.note(journal.Event{Kind: journal.Added})
	a.Recover("added by a reload")
}

// Expected reports whether other agents still have its name or its directory. Then it is
// declared, but nothing is started for it, and it is not shown.
func (a *Agent) Expected() bool { return a.wish.predecessors > 0 }
