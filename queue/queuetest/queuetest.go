// Package queuetest is a queue in memory, of the steps of package queue alone, for tests of those
// who ask for one (queue/wire). That it answers as the store does is tested in
// orchestrator/entries.
package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// Queue is the queue of one agent.
type Queue struct {
	mu   sync.Mutex
	all  []*Item // in the order in which they were accepted
	last int64   // the number that an entry, or a place, was given last
}

// Item is an entry with all that is known of it.
type Item struct {
	queue.Given
	Reply queue.Reply
}

// Add queues prompts, as if they had been sent at a time.
func (q *Queue) Add(now time.Time, letters ...queue.Letter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range letters {
		i := &Item{}
		i.Seq = q.number()
		i.Agent, i.Place, i.Delivery = "a", i.Seq, fmt.Sprintf("%012x", i.Seq)
		i.State, i.Lane, i.ID, i.Source, i.Accepted = queue.Queued, queue.Normal, l.ID, l.Source, now
		i.Checked, i.Prompt = l.Checked, l.Prompt
		if l.Urgent {
			i.Lane = queue.Urgent
		}
		q.all = append(q.all, i)
	}
}

// Items returns all entries, in the order in which they were accepted.
func (q *Queue) Items() []Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]Item, 0, len(q.all))
	for _, i := range q.all {
		all = append(all, *i)
	}
	return all
}

// InFlight returns the entry in flight, or nil.
func (q *Queue) InFlight() *Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.inFlight(); i != nil {
		return new(*i)
	}
	return nil
}

// Change has the entry with a delivery id take a step, whoever has it.
func (q *Queue) Change(delivery string, step func(queue.Entry) (queue.Entry, error)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.find(delivery)
	if i == nil {
		return fmt.Errorf("no entry is called %s", delivery)
	}
	return i.take(step)
}

// Show says what the next hand-over of an entry shows of its check.
func (q *Queue) Show(delivery string, s queue.Shown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.find(delivery); i != nil {
		i.Shown = s.Within()
	}
}

// Judge carries out a verdict about the entry with a delivery id, whose next hand-over shows s.
func (q *Queue) Judge(delivery string, v queue.Verdict, s queue.Shown, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.find(delivery)
	if i == nil {
		return fmt.Errorf("no entry is called %s", delivery)
	}
	if i.Cancel == queue.CancelAgain && !v.Passed {
		v.Place = q.number()
	}
	if err := i.take(func(e queue.Entry) (queue.Entry, error) { return e.Judge(v, now) }); err != nil {
		return err
	}
	if i.Shown = s.Within(); i.Iteration == 0 { // it begins as if it were new
		i.Shown = queue.Shown{}
	}
	return nil
}

func (q *Queue) number() int64 {
	q.last++
	return q.last
}

func (i *Item) take(step func(queue.Entry) (queue.Entry, error)) error {
	after, err := step(i.Entry)
	if err == nil {
		i.Entry = after
	}
	return err
}

func (q *Queue) inFlight() *Item { return q.first(func(i *Item) bool { return i.State.IsInFlight() }) }

func (q *Queue) find(delivery string) *Item {
	return q.first(func(i *Item) bool { return i.Delivery == delivery })
}

func (q *Queue) first(is func(*Item) bool) *Item {
	if at := slices.IndexFunc(q.all, is); at >= 0 {
		return q.all[at]
	}
	return nil
}

// next returns the entry that is handed over next, or nil.
func (q *Queue) next() (first *Item) {
	for _, i := range q.all {
		if i.State == queue.Queued && (first == nil || cmp.Or(cmp.Compare(i.Lane, first.Lane), cmp.Compare(i.Entry.Place, first.Entry.Place)) < 0) {
			first = i
		}
	}
	return first
}

// Carry carries out what a session asks.
func (q *Queue) Carry(session string, r wire.Request) wire.Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := wire.Answer{N: r.N}
	for ; a.Steps < len(r.Steps); a.Steps++ {
		if code, err := q.carry(session, r.Steps[a.Steps], &a); err != nil {
			a.Refuse(err)
			a.Code = cmp.Or(code, a.Code)
			break
		}
	}
	a.Known = true
	if i := q.inFlight(); i != nil {
		a.Entry = new(i.Entry)
	} else {
		a.Text, a.Shown = nil, nil
	}
	return a
}

func (q *Queue) carry(session string, s wire.Step, a *wire.Answer) (wire.Code, error) {
	now := q.inFlight()
	switch s.Do {
	case wire.Look:
		q.look(s, now, a)
		return "", nil
	case wire.Count:
		a.Depth = q.depth()
		return "", nil
	case wire.Offer:
		return "", q.offer(s, now, a)
	default:
	}
	switch {
	case now == nil || !now.Is(s.At.Delivery, s.At.Handover):
		return "", queue.ErrStale
	case now.Handover.Session != session && now.State != queue.Unproven && s.Do != wire.Rebind:
		return wire.InFlight, fmt.Errorf("entry %s is in flight for session %q", now.Delivery, now.Handover.Session)
	}
	claims := now.State.IsInSession()
	step := s.On
	if s.Do == wire.Again {
		step = func(e queue.Entry) (queue.Entry, error) {
			e.Checked = e.Checked || s.Checked
			return e.OfferAgain(s.To)
		}
	}
	if err := now.take(step); err != nil {
		return "", err
	}
	switch s.Do {
	case wire.Again, wire.Rebind:
		now.tell(a)
	case wire.Acknowledge, wire.Claim:
		if claims {
			now.Reply = s.Reply.Within()
		}
	default:
	}
	return "", nil
}

func (q *Queue) offer(s wire.Step, now *Item, a *wire.Answer) error {
	if now != nil {
		return fmt.Errorf("entry %s is in flight", now.Delivery)
	}
	i := q.next()
	if i == nil {
		return nil
	}
	err := i.take(func(e queue.Entry) (queue.Entry, error) {
		e.Checked = e.Checked || s.Checked
		return e.Offer(s.To)
	})
	if err == nil {
		i.tell(a)
	}
	return err
}

func (i *Item) tell(a *wire.Answer) { a.Text, a.Shown = new(i.Text), new(i.Shown) }

func (q *Queue) look(s wire.Step, now *Item, a *wire.Answer) {
	if now != nil {
		now.tell(a)
	}
	if at := s.At.Delivery; at != "" && (now == nil || now.Delivery != at) {
		a.Fate = wire.Undone
		if i := q.find(at); i != nil && i.State == queue.Done {
			a.Fate = wire.Done
		} else if i != nil && i.State == queue.Suspended {
			a.Fate = wire.Suspended
		}
	}
	a.Queued = s.Next && q.next() != nil
}

func (q *Queue) depth() *wire.Depth {
	d := &wire.Depth{}
	for _, i := range q.all {
		if i.State == queue.Queued {
			d.Queued++
		}
	}
	return d
}
