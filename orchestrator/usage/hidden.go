package usage

import (
	"time"

	"heartbeat/hook/client"
)

// hidden is what a conversation has taken of which its transcript has no answer: the
// client has it summed up when it is full, and asks small things for itself. Its own
// count at its end has all of it.
type hidden struct {
	told  client.Tokens // by the client, of the conversation since its beginning
	known bool          // what that was before the session
	seen  client.Tokens // in the transcript since it was told
	// compacted are the deliveries in whose turns the conversation was summed up, once
	// for each time, of which nothing was told yet.
	compacted []string
	// whole is what was told last and is not counted yet: a subagent's transcript may
	// be read behind it.
	whole client.Tokens
}

// Took says what the conversation had taken before the session, by the client's count.
func (c *Counter) Took(whole client.Tokens) {
	if !c.hidden.known {
		c.hidden.told, c.hidden.known = whole, true
	}
}

// compacts is a call of the model whose answer is not in the transcript.
func (c *Counter) compacts(of *share) {
	of.sum.Calls++
	c.hidden.compacted = append(c.hidden.compacted, of.Delivery)
}

// whole takes the client's own count.
func (c *Counter) whole(s client.Spending) {
	h := &c.hidden
	if s.Guessed {
		for _, of := range c.shares {
			of.sum.Guessed = of.sum.Turns
		}
	}
	if spent := s.Whole.Minus(h.told); least(spent) >= 0 || c.anew { // otherwise it is older, and has come late
		h.whole = s.Whole
	}
}

// reveal counts what is in the client's own count and in no transcript, when all of
// them are read: as spent where the conversation was summed up first, else on the first
// entry that is known.
func (c *Counter) reveal() {
	h := &c.hidden
	if h.whole == (client.Tokens{}) {
		return // a client that was killed, or does not count
	}
	spent := h.whole.Minus(h.told)
	if least(spent) < 0 {
		spent = h.whole // it has begun from zero
	}
	more := Sum{Tokens: spent.Minus(h.seen)}.NotLess().Tokens
	known, compacted := h.known, h.compacted
	*h = hidden{told: h.whole, known: true}
	if !known {
		h.compacted = compacted
		return
	}
	of := c.at(time.Time{})
	for _, delivery := range append(compacted, c.order...) {
		if s := c.shares[delivery]; s != nil && delivery != "" {
			of = s
			break
		}
	}
	of.sum.Tokens = of.sum.Tokens.Plus(more)
}

// untold is the end: the calls of which nothing was told are turns without figures.
func (c *Counter) untold() {
	c.reveal()
	for _, delivery := range c.hidden.compacted {
		if s := c.shares[delivery]; s != nil {
			s.sum.Unseen++
		}
	}
	c.hidden.compacted = nil
}

func least(t client.Tokens) int64 { return min(t.Input, t.Output, t.CacheRead, t.CacheWrite) }
