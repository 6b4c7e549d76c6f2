package entries

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// Carry carries out what a session asks of an agent's queue at a time. Steps before one that is
// refused stand; an error is the store's, and undoes all.
func Carry(c *store.Change, agent, session string, now time.Time, q wire.Request) (a wire.Answer, err error) {
	a.N = q.N
	for ; a.Steps < len(q.Steps); a.Steps++ {
		err := carry(c, agent, session, now, q.Steps[a.Steps], &a)
		if err == nil {
			continue
		}
		if !slices.ContainsFunc(refusals, func(is error) bool { return errors.Is(err, is) }) {
			return wire.Answer{N: q.N}, err
		}
		if a.Refuse(err); errors.Is(err, errOthers) {
			a.Code = wire.InFlight
		}
		break
	}
	a.Known = true
	a.Entry, err = InFlight(&c.View, agent)
	if a.Entry == nil {
		a.Text, a.Shown = nil, nil
	}
	return a, err
}

// errOthers means that the entry in flight is another session's.
var errOthers = errors.New("it is in flight for another session")

// refusals are why a step is refused that has changed nothing.
var refusals = []error{queue.ErrState, queue.ErrStale, queue.ErrUnproven, ErrInFlight, ErrDamaged, errOthers, errors.ErrUnsupported}

// carry carries out a step.
func carry(c *store.Change, agent, session string, now time.Time, s wire.Step, a *wire.Answer) error {
	switch s.Do {
	case wire.Look:
		return look(&c.View, agent, s, a)
	case wire.Count:
		return count(&c.View, agent, a)
	case wire.Offer:
		g, err := offer(c, agent, s.To, s.Checked)
		if errors.Is(err, ErrEmpty) {
			return nil
		}
		return tell(a, g, err)
	default:
	}
	at, err := refOf(&c.View, agent, session, s)
	if err != nil {
		return err
	}
	switch s.Do {
	case wire.Again:
		g, err := offerAgain(c, at, s.To, s.Checked)
		return tell(a, g, err)
	case wire.Claim:
		_, err = Claim(c, at, s.Reply)
		return err
	case wire.Acknowledge:
		_, err = Acknowledge(c, at, s.Reply)
		return err
	default:
	}
	e, err := Take(c, at, now, func(e queue.Entry) (queue.Entry, error) { return s.On(e) })
	if err != nil || s.Do != wire.Rebind {
		return err
	}
	g, err := GivenOf(&c.View, e)
	return tell(a, g, err)
}

// refOf names the hand-over that a step is about, which has to be the present one.
func refOf(v *store.View, agent, session string, s wire.Step) (Ref, error) {
	e, err := InFlight(v, agent)
	switch {
	case err != nil:
		return Ref{}, err
	case e == nil || !e.Is(s.At.Delivery, s.At.Handover):
		return Ref{}, fmt.Errorf("cannot %s entry %s: %w", s.Do, s.At.Delivery, queue.ErrStale)
	case e.Handover.Session != session && e.State != queue.Unproven && s.Do != wire.Rebind:
		return Ref{}, fmt.Errorf("entry %s is in flight for session %q: %w", e.Delivery, e.Handover.Session, errOthers)
	}
	return RefOf(e), nil
}

// tell puts the text of an entry into an answer.
func tell(a *wire.Answer, g *queue.Given, err error) error {
	if err == nil {
		a.Text, a.Shown = &queue.Text{Prompt: g.Prompt}, &g.Shown
	}
	return err
}

func look(v *store.View, agent string, s wire.Step, a *wire.Answer) error {
	now, err := InFlight(v, agent)
	if err == nil && now != nil {
		var g *queue.Given
		g, err = GivenOf(v, now)
		err = tell(a, g, err)
	}
	if at := s.At.Delivery; err == nil && at != "" && (now == nil || now.Delivery != at) {
		a.Fate, err = fateOf(v, agent, at)
	}
	if err == nil && s.Next {
		a.Queued, err = v.One(`SELECT 1 FROM entries WHERE agent = $1 AND state = 'queued' LIMIT 1`, []any{agent}, new(int))
	}
	return err
}

// fateOf is what became of an entry that is not in flight.
func fateOf(v *store.View, agent, delivery string) (wire.Fate, error) {
	e, err := Find(v, agent, delivery)
	switch {
	case err != nil:
		return "", err
	case e != nil && e.State == queue.Done:
		return wire.Done, nil
	case e != nil && e.State == queue.Suspended:
		return wire.Suspended, nil
	}
	return wire.Undone, nil
}

// mostNames is how many entries Count names.
const mostNames = 5

func count(v *store.View, agent string, a *wire.Answer) error {
	d, err := DepthOf(v, agent)
	if err != nil {
		return err
	}
	first, err := Queued(v, agent, mostNames)
	a.Depth = &wire.Depth{Queued: d.Queued}
	for _, e := range first {
		a.Depth.Names = append(a.Depth.Names, cmp.Or(e.ID, e.EntryID[:min(12, len(e.EntryID))]))
	}
	return err
}
