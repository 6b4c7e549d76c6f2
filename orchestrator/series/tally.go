package series

import (
	"maps"
	"slices"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
)

// Counter counts a run's events as they are written. It has to see them all: an entry is done
// once, however often they say so.
type Counter struct{ known known }

// NewCounter returns a Counter that has seen nothing.
func NewCounter() *Counter { return &Counter{newKnown()} }

// Count counts events in the transaction that writes them, in their order. The caller calls
// kept once that is committed, and before it counts others.
func (c *Counter) Count(in *store.Change, events []journal.Event) (kept func(), err error) {
	t := c.tally(events)
	if err := t.write(in, time.Time{}); err != nil {
		return nil, err
	}
	return func() { c.known.learn(t.known, events) }, nil
}

// Since counts events that were written before, those from a time on. Those before it say what
// was counted of them.
func (c *Counter) Since(in *store.Change, events []journal.Event, from time.Time) error {
	return c.tally(events).write(in, from)
}

// tally counts events, and leaves what is known as it is.
func (c *Counter) tally(events []journal.Event) *tally {
	t := &tally{map[string]map[int64]*Point{}, newKnown()}
	t.known.learn(c.known, events)
	for _, e := range events {
		t.take(e)
	}
	return t
}

// write writes what was counted in slots from a time on.
func (t *tally) write(in *store.Change, from time.Time) error {
	for agent, slots := range t.all {
		for _, p := range slots {
			if p.At.Before(from) {
				continue
			}
			if err := Add(in, agent, *p); err != nil {
				return err
			}
		}
	}
	return nil
}

// tally counts events by agent and slot. It is pure.
type tally struct {
	all map[string]map[int64]*Point
	known
}

// known is what was counted of sessions that live.
type known struct {
	// counted is how many entries an agent's live session has done that its Stops have
	// named, and proven when which deliveries have passed that none has named.
	counted map[string]int
	proven  map[string]map[string]time.Time
	// named are the last ones that Stops have named: the verdict may be noted after that.
	named map[string][]string
}

func newKnown() known {
	return known{map[string]int{}, map[string]map[string]time.Time{}, map[string][]string{}}
}

// learn has k know of the agents of some events what from does. Of all others nothing is copied:
// a batch of events is of some agents, however many a fleet has.
func (k known) learn(from known, events []journal.Event) {
	for _, e := range events {
		copyOf(k.counted, from.counted, e.Agent)
		copyOf(k.named, from.named, e.Agent) // what it has is not changed
		if copyOf(k.proven, from.proven, e.Agent); k.proven[e.Agent] != nil {
			k.proven[e.Agent] = maps.Clone(k.proven[e.Agent])
		}
	}
}

// copyOf makes what to has of an agent what from has.
func copyOf[V any](to, from map[string]V, agent string) {
	if is, has := from[agent]; has {
		to[agent] = is
	} else {
		delete(to, agent)
	}
}

// at returns an agent's point for a time.
func (t *tally) at(agent string, at time.Time) *Point {
	slots, slot := t.all[agent], slotOf(at)
	if slots == nil {
		slots = map[int64]*Point{}
		t.all[agent] = slots
	}
	if slots[slot] == nil {
		slots[slot] = &Point{At: startOf(slot)}
	}
	return slots[slot]
}

func (t *tally) take(e journal.Event) {
	if e.Agent == "" {
		return
	}
	switch e.Kind {
	case journal.Fired:
		p := t.at(e.Agent, e.At)
		if p.Fires++; !e.Due.IsZero() {
			p.Late = max(p.Late, e.At.Sub(e.Due))
		}
	case journal.Stopped:
		if e.Done != "" {
			t.stopped(e)
		}
	case journal.Ended:
		p := t.at(e.Agent, e.At)
		p.Sessions++
		p.Done += int64(max(0, e.Acknowledged-t.counted[e.Agent]-t.passed(e)))
		t.counted[e.Agent] = 0
	case journal.Checked:
		switch e.Verdict {
		case journal.Passed:
			t.passes(e)
		case string(inbox.MaxIterations), string(inbox.MaxTime), string(inbox.NoProgress), string(inbox.TooFast): // given up
			t.at(e.Agent, e.At).Failed++
		}
	case journal.Forged:
		if e.Verdict == string(inbox.Forged) {
			t.at(e.Agent, e.At).Failed++
		}
	case journal.Recovered:
		if e.Reason.Raw() == string(inbox.DeadLettered) {
			t.at(e.Agent, e.At).Failed++
		}
	}
}

// mostNamed is how many of the deliveries are known that Stops have named.
const mostNamed = 16

// passes counts an entry when its check has passed, whether a session lives or not.
func (t *tally) passes(e journal.Event) {
	all := t.proven[e.Agent]
	if _, known := all[e.Entry]; known || slices.Contains(t.named[e.Agent], e.Entry) {
		return
	}
	if all == nil {
		all = map[string]time.Time{}
		t.proven[e.Agent] = all
	}
	all[e.Entry] = e.At
	t.at(e.Agent, e.At).Done++
}

// stopped counts what a Stop calls done, unless it is counted because its check has passed.
func (t *tally) stopped(e journal.Event) {
	t.counted[e.Agent]++
	named := append(t.named[e.Agent], e.Done)
	t.named[e.Agent] = named[max(0, len(named)-mostNamed):]
	if _, known := t.proven[e.Agent][e.Done]; known {
		delete(t.proven[e.Agent], e.Done)
		return
	}
	t.at(e.Agent, e.At).Done++
}

// passed is how many checks have passed in the session that has ended and were named by
// none of its Stops. It forgets those of before.
func (t *tally) passed(e journal.Event) (n int) {
	for _, at := range t.proven[e.Agent] {
		if !at.Before(e.Started) {
			n++
		}
	}
	delete(t.proven, e.Agent)
	return n
}
