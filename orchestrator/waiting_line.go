package orchestrator

import (
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/slots"
	"heartbeat/orchestrator/status"
)

// defaultStartEvery spaces starts while startsAtOnce sessions are starting: a
// client's start is the most expensive second of its life.
const (
	defaultStartEvery = time.Second
	startsAtOnce      = 2
)

// line is who has a session slot and who waits for one, and how quickly sessions
// are started one after another.
type line struct {
	*slots.Slots[*member]
	startEvery time.Duration
	slotTime   time.Duration // how long a session may keep a slot that others wait for; 0: forever
	lastStart  time.Time

	lookAt time.Time // when the answer may be another one by itself, or zero
	timer  *time.Timer
	rings  time.Time // when timer does
}

func newLine(f *config.Fleet, startEvery time.Duration) line {
	return line{Slots: slots.New[*member](f.MaxSessions, f.Groups), startEvery: startEvery, slotTime: f.SlotTime}
}

// limit follows another version of the fleet's file.
func (l *line) limit(f *config.Fleet) {
	l.Limit(f.MaxSessions, f.Groups)
	l.slotTime = f.SlotTime
}

// follow gives a member the place that its state requires.
func (l *line) follow(m *member) {
	switch m.State() {
	case status.Waiting:
		l.Wait(m, m.Def().Group)
	case status.Starting, status.Running, status.Ending:
		l.Take(m, m.Def().Group)
	default:
		l.Leave(m)
	}
}

// obstacle says why a member that has work cannot start now, or "".
func (l *line) obstacle(m *member, now time.Time) string {
	switch first, others := l.First(); {
	case l.Full():
		return "all session slots are taken"
	case l.GroupFull(m.Def().Group):
		return fmt.Sprintf("all session slots of the group %q are taken", m.Def().Group)
	case others && first != m:
		return "other agents wait longer"
	}
	if at := l.lastStart.Add(l.startEvery); now.Before(at) && l.booting() >= startsAtOnce {
		l.lookAgain(at)
		return "other sessions are starting"
	}
	return ""
}

// booting counts the sessions from which no hook has been heard yet.
func (l *line) booting() int {
	n := 0
	for m := range l.Taken() {
		if m.Boots() {
			n++
		}
	}
	return n
}

// giveWay returns the session that has waited longest for work, of those whose
// group helps; without one, the session that has had its slot longest, once its
// slot-time is over. coming is true if a slot is becoming free anyway.
func (l *line) giveWay(serves func(group string) bool, now time.Time) (asked *member, coming bool) {
	var idlest, oldest *member
	var idle, has time.Time
	for m, group := range l.Taken() {
		if !serves(group) {
			continue
		}
		if m.Leaves() {
			return nil, true
		}
		if since, ok := m.IdleSince(); ok && (idlest == nil || since.Before(idle)) {
			idlest, idle = m, since
		}
		if since, ok := m.SlotSince(); ok && (oldest == nil || since.Before(has)) {
			oldest, has = m, since
		}
	}
	switch over := has.Add(l.slotTime); {
	case idlest != nil:
		idlest.Yield()
		return idlest, true
	case oldest == nil || l.slotTime <= 0:
		return nil, false
	case now.Before(over):
		l.lookAgain(over)
		return nil, false
	}
	oldest.Finish(agent.FinishSlotTime)
	return oldest, true
}

// lookAgain checks again at a time at the latest.
func (l *line) lookAgain(at time.Time) {
	if l.lookAt.IsZero() || at.Before(l.lookAt) {
		l.lookAt = at
	}
}

// arm sets the timer to when to check again.
func (l *line) arm(now time.Time, works bool, ask func()) {
	if !works {
		l.lookAt = time.Time{}
	}
	if l.lookAt.Equal(l.rings) {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.rings = l.lookAt; !l.rings.IsZero() {
		l.timer = time.AfterFunc(l.rings.Sub(now), ask)
	}
}
