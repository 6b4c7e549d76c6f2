package agent

import (
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// Alarm is something to do with an agent after a while.
type Alarm int

// The alarms.
const (
	Tail    Alarm = iota // complete a line without its newline
	Inspect              // look at a directory that may be half removed or half made
	Count                // count what is queued for an agent that does not start
	Reclaim              // free disk space that could not be freed yet
	Ask                  // check whether the obstacle to sessions is gone
	Meet                 // check whether the client because of which it is held is still installed
	alarmCount
)

// alarms has the time of each alarm, zero if it is not set.
type alarms [alarmCount]time.Time

func (s *alarms) set(a Alarm, at time.Time) { s[a] = at }

// The delays of alarms other than Tail.
const (
	// InspectEvery is how often to look for a lost directory.
	InspectEvery = time.Second
	// countDelay is how old the count of a queue that is not looked into may be.
	countDelay = 2 * time.Second
	// ReclaimAgain is for disk space that could not be freed, for example of an
	// inbox that was moved aside and has late writers; see inbox.Held.Reclaim.
	ReclaimAgain = 70 * time.Second
)

// InspectLater, CountLater and ReclaimLater set an alarm, if it is not set. The
// queue of an agent that may start is looked into anyway, and not counted.
func (a *Agent) InspectLater(now time.Time) { a.later(Inspect, now.Add(InspectEvery)) }

// CountLater counts what is queued after a while.
func (a *Agent) CountLater(now time.Time) {
	if a.life.is == Live || a.life.is == Starting || a.shown.State == status.Idle {
		return
	}
	a.later(Count, now.Add(countDelay))
}

// ReclaimLater frees disk space after a while.
func (a *Agent) ReclaimLater(now time.Time) { a.later(Reclaim, now.Add(ReclaimAgain)) }

func (a *Agent) later(what Alarm, at time.Time) {
	if a.alarms[what].IsZero() && !a.wish.removed {
		a.alarms.set(what, at)
	}
}

// Next returns when Ring is to be called, or zero.
func (a *Agent) Next() time.Time {
	all := append(a.alarms[:], a.past.backOff.until, a.past.parked.Until, a.past.budget.until, a.wish.paused.Until, a.tellsStuck())
	all = slices.DeleteFunc(all, time.Time.IsZero)
	if len(all) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(all, time.Time.Compare)
}

// ClockSet has the agent show what it waits for by a clock that was set.
func (a *Agent) ClockSet(now time.Time) {
	for _, at := range []*time.Time{&a.past.backOff.until, &a.past.parked.Until, &a.past.budget.until, &a.wish.paused.Until} {
		*at = deadline.Shown(*at, now)
	}
}

// Ring handles a time that Next returned. It ends delays that are over, and returns the alarms
// that are due.
func (a *Agent) Ring(now time.Time) (due []Alarm) {
	p := &a.past
	over := func(at time.Time) bool { return !at.IsZero() && deadline.Over(at, now) }
	if over(p.backOff.until) || over(p.parked.Until) || over(p.budget.until) {
		a.idle, a.queue.stale = "its delay is over", true
		if over(p.backOff.until) {
			p.backOff = wait{}
		}
		if over(p.budget.until) {
			p.budget = wait{}
		}
		if over(p.parked.Until) {
			p.parked = Parking{}
		}
	}
	if a.wish.paused.Over(now) {
		a.idle, a.queue.stale = "its pause is over", true
		a.pauseEnds()
	}
	if at := a.tellsStuck(); !at.IsZero() && !now.Before(at) {
		k := a.past.stuck
		k.Told = true
		a.note(journal.Event{Kind: journal.Stuck, Reason: foreign.Text(k.Why), Started: k.Since})
	}
	for what, at := range a.alarms {
		if !at.IsZero() && !now.Before(at) {
			if a.alarms[what] = (time.Time{}); (Alarm(what) == Ask || Alarm(what) == Meet) && !a.wish.removed {
				a.alarms[what] = now.Add(askLate) // Asked and FindsClient come before
			}
			due = append(due, Alarm(what))
		}
	}
	return due
}
