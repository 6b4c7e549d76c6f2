package agent

import (
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// Place is the state of an agent's directory.
type Place int

// Ours, lost, or replaced by another one that is being locked.
const (
	Ours Place = iota
	Lost
	Retaking
)

type place struct {
	is  Place
	why string // what is wrong with it, or ""
}

// Place returns the state of its directory.
func (a *Agent) Place() Place { return a.place.is }

// InPlace reports whether neither its directory nor a folder of its queue was missing, or
// another one, when they were last seen.
func (a *Agent) InPlace() bool { return a.place.is == Ours && a.queue.folderGone.IsZero() }

// Loses says that its directory is gone, or cannot be locked.
func (a *Agent) Loses(why string) {
	if a.place.is = Lost; a.place.why == why {
		return
	}
	a.place.why = why
	a.note(journal.Event{Kind: journal.DirectoryLost, Reason: foreign.Text(why)})
}

// Finds says that its directory exists, and how.
func (a *Agent) Finds(how string) {
	was := a.place
	a.place = place{is: Ours}
	if was.why != "" {
		a.note(journal.Event{Kind: journal.DirectoryFound, Reason: foreign.Text(how)})
		a.queue.stale = true
	}
}

// Replaced begins to lock the directory that replaced the one that was locked.
func (a *Agent) Replaced() { a.place.is = Retaking }

// Displaced says that another directory stands in its place, which cannot be locked yet. A
// session in the former one ends.
func (a *Agent) Displaced(why string) {
	a.Loses(why)
	if a.life.is == Live {
		a.order(session.Order{Stop: true, Finish: FinishReplaced})
	}
}

// Retaken says that the directory which replaced the locked one is locked now. Failures in the
// old one do not count any more. The entry in flight in the new one is recovered before a
// session starts there, whatever is being done with the agent now.
func (a *Agent) Retaken(now time.Time) {
	a.Loses(FinishReplaced)
	a.past.left.owed, a.past.left.unseen = nil, true
	a.Finds("another directory stands in its place; it is locked now")
	switch {
	case a.life.is == Live: // in a directory that no longer exists
		a.order(session.Order{Stop: true, Finish: FinishReplaced})
	case a.life.is == None && (a.past.blocked.why != "" || a.Standing(now).State != status.Held):
		a.past.history = history{}
		a.Recover(FinishReplaced)
	}
}
