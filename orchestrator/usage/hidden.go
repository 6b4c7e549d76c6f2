package usage

import (
	"time"

	"heartbeat/hook/client"
)

// hidden are tokens that a conversation has used without an answer in its transcript:
// the client has a full conversation summarised, and makes small requests of its own.
// The client's own count, written when it ends, includes them.
type hidden struct {
	told  client.Tokens // the client's last count, of the whole conversation
	known bool          // told at the start of the session is known
	seen  client.Tokens // in the transcript since told
	// compacted has, once for each summary that no count includes yet, the delivery in
	// whose turn it was made.
	compacted []string
	// whole is a count that is not taken over into told yet, because a subagent's
	// transcript may still have to be read.
	whole client.Tokens
}

// Took sets what the conversation had used before the session, by the client's count.
func (c *Counter) Took(whole client.Tokens) {
	if !c.hidden.known {
		c.hidden.told, c.hidden.known = whole, true
	}
}

// compacts counts a call of the model whose answer is not in the transcript.
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
	if spent := s.Whole.Minus(h.told); least(spent) >= 0 || c.anew { // otherwise it is an older count that arrived late
		h.whole = s.Whole
	}
}

// reveal counts the tokens that are in the client's own count and in no transcript, once
// all transcripts are read. They go to the entry in whose turn the conversation was first
// summarised, otherwise to the first known entry.
func (c *Counter) reveal() {
	h := &c.hidden
	if h.whole == (client.Tokens{}) {
		return // the client was killed, or does not count
	}
	spent := h.whole.Minus(h.told)
	if least(spent) < 0 {
		spent = h.whole // the client began to count at zero
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

// untold ends the counting: calls that no count includes become turns without figures.
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
