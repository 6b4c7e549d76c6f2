// Package agent is the scheduler's model of one agent of a fleet. It has no files, no
// processes, no clock and no locks. Each event is a method that is told the time. What has
// to be done about it stays in the agent until the scheduler takes it: orders for the
// session (Orders), lines for the journal (Notes), a queue to look into (WantsLook), alarms
// (Next), and what was begun (Doing).
//
// An agent has four parts, each with a type of its own: its wish (what people and the
// configuration want: paused, removed, another definition), its place (its directory: ours,
// lost, or being locked again), its life (what is being done with it: nothing, recovering,
// starting, a live session), and its past (what is remembered of failures and of what they
// left).
//
// Why nothing is started is not a state. It is the first of the Gates that says no; idle,
// waiting, backing-off, parked and held are names for that.
package agent

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// Agent is one agent. It is not safe for use by several goroutines.
type Agent struct {
	Name  string
	def   *config.Agent
	wish  wish
	place place
	life  life
	past  past
	queue queue
	check checking
	// idle is why it does nothing although no gate says no.
	idle   string
	shown  shown
	alarms alarms
	turns  turns
	labour labour
	done   done
	told   told
}

// shown is what was last published about it.
type shown struct {
	Reason
	since time.Time
	moves int   // changes of state
	kept  *stay // the last state that kept it, held or parked; nil: none did
}

// stay is a time in a state, from since until left.
type stay struct {
	state       status.State
	text        string
	since, left time.Time
}

// moment is how long an agent may leave the state held or parked, to be tried, and still keep
// the time since when it is in it.
const moment = 10 * time.Second

// done is what it has achieved in this run.
type done struct {
	acknowledged, deadLettered int
	spent                      usage.Sum
}

// told is what others are still to be told; see Orders and Notes.
type told struct {
	orders []session.Order
	notes  []journal.Event
}

// New returns an agent that does nothing.
func New(def *config.Agent, now time.Time) *Agent {
	return &Agent{Name: def.Name, def: def, shown: shown{Reason: Reason{State: status.Idle}, since: now}}
}

// Def returns the definition in force.
func (a *Agent) Def() *config.Agent { return a.def }

// Declared returns the definition in the file. Triggers use it at once, before the next
// session does.
func (a *Agent) Declared() *config.Agent {
	if a.wish.next != nil {
		return a.wish.next
	}
	return a.def
}

// State returns the state that was last published.
func (a *Agent) State() status.State { return a.shown.State }

// Empty reports whether it is idle because nothing is queued (status.AgentState.Empty).
func (a *Agent) Empty() bool { return a.shown.State == status.Idle && !a.shown.GoesOn }

// Moves returns how many times its state has changed.
func (a *Agent) Moves() int { return a.shown.moves }

// Orders returns the orders for its session, once.
func (a *Agent) Orders() []session.Order {
	orders := a.told.orders
	a.told.orders = nil
	return orders
}

// Notes returns the lines for the journal, once.
func (a *Agent) Notes() []journal.Event {
	notes := a.told.notes
	a.told.notes = nil
	return notes
}

func (a *Agent) note(e journal.Event) {
	e.Agent = a.Name
	a.told.notes = append(a.told.notes, e)
}

// order sends an order to the live session, if there is one.
func (a *Agent) order(o session.Order) {
	if a.life.is == Live {
		a.told.orders = append(a.told.orders, o)
	}
}

// Inherit takes over what an earlier run left for readers.
func (a *Agent) Inherit(kept status.AgentState) {
	a.past.left.outcome, a.life.session, a.past.loss = kept.Last, kept.Session, kept.QueueLost
	a.past.left.denied, a.past.left.servers, a.past.left.strays = kept.Denied, kept.Servers, kept.Strays
}

// Settle brings the published state in line with the real one. If the state has changed, it
// returns the journal line for that.
func (a *Agent) Settle(now time.Time) (changed *journal.Event) {
	r := a.Standing(now)
	if r.State != status.Waiting {
		a.queue.line = ""
	}
	from := a.shown.Reason
	a.shown.Reason = r
	if r.State == from.State {
		return nil
	}
	a.shown.moves++
	a.shown.follow(from, r, now)
	return &journal.Event{
		Agent: a.Name, Kind: journal.StateChanged, From: string(from.State), State: string(r.State),
		WasPaused: from.Paused, Paused: r.Paused,
		Reason: foreign.Text(r.Text), Fix: foreign.Text(r.Fix), Until: r.Until, Session: a.life.session,
	}
}

// follow sets since when the agent is in its state, after a change.
func (s *shown) follow(from, to Reason, now time.Time) {
	since := now
	if k := s.kept; k != nil && to.keeps() && k.state == to.State && k.text == to.Text && now.Sub(k.left) < moment {
		since = k.since
	}
	if from.keeps() {
		s.kept = &stay{from.State, from.Text, s.since, now}
	}
	s.since = since
}

// keeps reports whether a state is held or parked.
func (r Reason) keeps() bool { return r.State == status.Held || r.State == status.Parked }

// Describe returns what readers are told about the agent, except its triggers.
func (a *Agent) Describe() status.AgentState {
	d := status.AgentState{
		Agent: a.Name, State: a.shown.State, Since: a.shown.since, Until: a.shown.Until, Reason: foreign.Text(a.shown.Text), Fix: foreign.Text(a.shown.Fix), GoesOn: a.shown.GoesOn,
		Paused: a.wish.paused.Since, PausedUntil: a.wish.paused.Until, PausedBy: a.wish.paused.By, Failures: a.past.history.failures, Session: a.life.session, Last: a.past.left.outcome,
		Lasts: a.past.held.lasts && !a.wish.removed, Acknowledged: a.done.acknowledged, DeadLettered: a.done.deadLettered, Spent: a.done.spent, Lost: a.place.why, QueueLost: a.past.loss,
		Approval: a.wish.awaits, Aside: len(a.wish.aside), AwaitsAside: a.wish.asks, Cancelling: a.life.cancels != nil,
	}
	d.OverBudget = d.State == status.Parked && d.Until.Equal(a.past.budget.until)
	d.LeavesRoom = d.State == status.Parked && a.past.parked.Room
	if c := a.past.client.is; c.Breaks != "" {
		d.Client = &status.Drift{Client: foreign.Text(c.Name), Breaks: foreign.Text(c.Breaks), Fix: foreign.Text(c.Fix)}
	}
	if a.past.stuck != nil {
		d.Stuck = new(*a.past.stuck)
	}
	d.Denied, d.Servers, d.Strays = a.past.left.denied, a.past.left.servers, a.past.left.strays
	if p := a.check.told; p != nil {
		d.Proof = new(*p)
	}
	if a.life.is == Live {
		last := a.life.last
		if last.Acknowledged > 0 || last.Denied != nil { // otherwise those of the last session say more
			d.Denied = last.Denied
		}
		if last.Acknowledged > 0 || last.Strays != nil {
			d.Strays = last.Strays
		}
		if last.Acknowledged > 0 {
			d.Servers = nil
			if last.Servers != nil {
				d.Servers = *last.Servers
			}
		}
		d.Phase, d.Work, d.Tool, d.Silent = last.Phase, last.Work, last.Tool, last.Silent
		d.Attached, d.Hush = last.Attached, last.Hush
		if last.Said != nil {
			d.Said = &status.Said{At: last.Said.At, Text: foreign.Text(last.Said.Text)}
		}
		d.Acknowledged += a.life.last.Acknowledged
	}
	return d
}

// DeadLettered counts a prompt that was given up.
func (a *Agent) DeadLettered() { a.done.deadLettered++ }

// InTurn reports whether its session was in a turn at a time.
func (a *Agent) InTurn(at time.Time) bool { return a.turns.at(at) }

// LeftInFlight records the entry that is in flight without a session; nil: none.
func (a *Agent) LeftInFlight(w *hook.Work) { a.past.left.inFlight = w }
