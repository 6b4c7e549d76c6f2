package promise

import (
	"cmp"
	"errors"
	"time"

	"heartbeat/hook/inbox"
)

// Queue tells what stands in an agent's files at the end.
type Queue struct {
	Agent string
	// Named returns the name of the prompt that a text is, or has in it.
	Named func(text string) string
	// Text is how texts are compared; nil: [Text].
	Text func(text string) string
}

// Facts reads dead letters, replies and what is left, which it changes nothing
// of. What it could read is returned with the error.
func (s Queue) Facts(q *inbox.Queue) (r Record, err error) {
	if s.Text == nil {
		s.Text = Text
	}
	for d, err := range q.DeadLetters() {
		if err != nil {
			return r, err
		}
		raw := string(d.Raw())
		r = append(r, Fact{At: d.At, Kind: Filed, Agent: s.Agent, Prompt: s.Named(raw), Delivery: d.DeliveryID, Reason: d.Reason, Text: s.Text(raw)})
	}
	for d, err := range q.Deliveries() {
		if err != nil {
			return r, err
		}
		name := cmp.Or(s.Named(d.ID), s.Named(d.Source), s.Named(d.Reply))
		r = append(r, Fact{At: d.AcknowledgedAt, Kind: Replied, Agent: s.Agent, Prompt: name, Delivery: d.DeliveryID, Session: d.Session, Text: s.Text(d.Reply)})
	}
	left, err := s.left(q)
	return append(r, left...), err
}

// mostLeft is how many prompts left in a queue are named.
const mostLeft = 1000

func (s Queue) left(q *inbox.Queue) (r Record, err error) {
	fact := Fact{At: time.Now(), Kind: Left, Agent: s.Agent}
	entries, err := q.List(mostLeft)
	for _, e := range entries {
		fact.Prompt, fact.Note = cmp.Or(s.Named(e.Prompt), s.Named(e.Source)), "queued"
		r = append(r, fact)
	}
	flight, flightErr := q.Peek()
	if flight != nil {
		fact.Prompt, fact.Note = s.Named(flight.RawLine), "in flight"
		r = append(r, fact)
	}
	depth, depthErr := q.Depth(1)
	if depth.Tail {
		fact.Prompt, fact.Note = "", "a line without its end"
		r = append(r, fact)
	}
	return r, errors.Join(err, flightErr, depthErr)
}
