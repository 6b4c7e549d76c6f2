package usage

import (
	"math"
	"slices"
	"time"

	"heartbeat/hook/client"
)

// maxCost is more than a session can spend between two reports of its cost.
const maxCost = 1000 // dollars

// maxWorks bounds how many entries are remembered whose last lines may still arrive.
// maxSeen bounds how many answers are remembered that may get another line.
const (
	maxWorks = 256
	maxSeen  = 4096
)

// Counter counts what one session spends. It takes what the client reports, in the
// order in which the client reports it. It is pure.
type Counter struct {
	works  []work
	shares map[string]*share // by delivery id
	order  []string          // the keys of shares: the last one is in flight, or was
	seen   map[string]answer // by message id
	ids    []string          // of seen, oldest first

	asked    bool // the model was asked and has not answered yet
	again    bool // the model was asked once more within a turn
	askedFor string
	tail     tail
	asides   asides
	// total is the last reported cost of the conversation, reported at toldAt. loose
	// is the part of it that belongs to answers not seen yet.
	total  float64
	known  bool
	anew   bool // another conversation has begun
	toldAt time.Time
	loose  float64
	// looseAt is when the last part of loose was reported; zero: it is all that there is.
	looseAt time.Time

	hidden hidden
}

type work struct {
	Of
	since time.Time
}

type answer struct {
	tokens client.Tokens
	of     string
}

// share is what was spent on one entry in this session.
type share struct {
	Of
	sum, told Sum // everything, and what Drain has returned of it
	// weights are of the answers whose cost is not known yet. open has the start times
	// of the turns whose cost is not known yet.
	weights []weight
	open    []time.Time
	asked   bool // the transcript has a prompt
}

// Works sets what the session works on from a time on; the zero Of means no entry.
func (c *Counter) Works(o Of, since time.Time) {
	if n := len(c.works); n > 0 && c.works[n-1].Of == o {
		return
	}
	since = since.Round(0) // the wall clock, as in the client's lines
	for i, w := range c.works {
		if w.since.After(since) { // the clock was set back
			c.works[i].since = since
		}
	}
	if c.works = append(c.works, work{o, since}); len(c.works) > maxWorks {
		c.works = c.works[1:]
	}
	c.share(o)
}

// at returns the share of the entry that was in flight at a time. The zero time means
// now.
func (c *Counter) at(t time.Time) *share {
	if len(c.works) == 0 {
		return c.share(Of{})
	}
	i := len(c.works) - 1
	for !t.IsZero() && i > 0 && c.works[i].since.After(t) {
		i--
	}
	return c.share(c.works[i].Of)
}

// shareOf returns the share of a delivery, or that of the entry in flight if it has none.
func (c *Counter) shareOf(delivery string) *share {
	if s := c.shares[delivery]; s != nil {
		return s
	}
	return c.at(time.Time{})
}

func (c *Counter) share(o Of) *share {
	s := c.shares[o.Delivery]
	if s == nil {
		s = &share{}
		if c.shares == nil {
			c.shares = map[string]*share{}
		}
		c.shares[o.Delivery] = s
		c.order = append(c.order, o.Delivery)
	}
	s.Of = o
	return s
}

// Take counts a line of a transcript. subagent names that of a subagent, whose prompts do
// not count as turns; "" is the client's own.
func (c *Counter) Take(s client.Spending, subagent string) {
	aside := subagent != ""
	if aside {
		c.asides.take(s, subagent)
	} else {
		c.tail.take(s)
	}
	switch {
	case s.Cost > 0:
		c.whole(s)
		c.Told(s.Cost, time.Time{})
	case s.Compacts:
		c.compacts(c.at(s.At))
	case s.Cut, aside && (s.Asks || s.AsksAgain || s.Fails):
	case s.Asks:
		c.asks(c.at(s.At))
	case s.AsksAgain:
		c.asksAgain(c.at(s.At))
	case s.Fails:
		c.asked, c.again = false, false // no answer, so nothing was billed
	case s.Message != "":
		c.answers(s, aside)
	}
}

func (c *Counter) asks(of *share) {
	c.cutOff()
	c.asked, c.askedFor, of.asked = true, of.Delivery, true
}

// cutOff ends a turn whose answer, or last answer, is missing from the transcript.
func (c *Counter) cutOff() {
	if s := c.shares[c.askedFor]; s != nil && (c.asked || c.again) {
		s.sum.Unseen++
	}
	c.asked, c.again = false, false
}

func (c *Counter) asksAgain(of *share) {
	if !c.asked {
		c.again, c.askedFor = true, of.Delivery
	}
}

// Miss counts a record that exists but cannot be read.
func (c *Counter) Miss() { c.at(time.Time{}).sum.Unseen++ }

func (c *Counter) answers(s client.Spending, aside bool) {
	had, again := c.seen[s.Message]
	of := c.shares[had.of]
	if !again || of == nil {
		of = c.at(s.At)
	}
	more := s.Tokens.Minus(had.tokens)
	of.sum.Tokens = of.sum.Tokens.Plus(more)
	c.hidden.seen = c.hidden.seen.Plus(more)
	of.weigh(s.At, more.Weight())
	c.remember(s.Message, answer{s.Tokens, of.Delivery})
	if again {
		return
	}
	of.sum.Calls++
	c.again = c.again && aside
	if c.asked && !aside {
		c.asked = false
		of.sum.Turns++
		if !s.At.Before(c.toldAt) || c.toldAt.IsZero() {
			of.open = append(of.open, s.At)
		}
	}
}

func (c *Counter) remember(id string, a answer) {
	if c.seen == nil {
		c.seen = map[string]answer{}
	}
	if _, known := c.seen[id]; !known {
		if c.ids = append(c.ids, id); len(c.ids) > maxSeen {
			delete(c.seen, c.ids[0])
			c.ids = c.ids[1:]
		}
	}
	c.seen[id] = a
}

// Base sets what the conversation had cost before the session.
func (c *Counter) Base(total float64) {
	if !c.known {
		c.total, c.known, c.tail.before = total, true, total
	}
}

// Told takes the client's report of what the conversation has cost up to a time; the
// zero time means in total. What was spent since the last report is divided among the
// entries in flight since then.
func (c *Counter) Told(total float64, at time.Time) {
	spent := total - c.total
	switch {
	case spent >= 0:
	case c.anew:
		spent = total
	default:
		return // an older report that arrived late
	}
	if c.known && spent > maxCost && !c.anew {
		return // impossible: wait for a plausible report
	}
	known := c.known || !c.hasAnswers()
	if !c.known && !c.hasAnswers() {
		spent = 0 // this is what the conversation had cost before
	}
	c.total, c.known, c.anew = total, true, false
	if !known || spent > maxCost || math.IsNaN(spent) {
		c.unpriced() // how much of it is this session's is not known
		return
	}
	if !at.IsZero() {
		c.toldAt = at
	}
	if spent > 0 {
		c.loose, c.looseAt = c.loose+spent, at
	}
	c.divide()
	for _, s := range c.shares {
		s.price(at)
	}
}

// unpriced counts the open turns as turns without a cost.
func (c *Counter) unpriced() {
	for _, s := range c.shares {
		s.sum.Unpriced += int64(len(s.open))
		s.open, s.weights = nil, nil
	}
}

// Anew starts another conversation, whose reported cost may begin at zero.
func (c *Counter) Anew() {
	c.reveal()
	c.anew = true
}

func (c *Counter) hasAnswers() bool { return len(c.ids) > 0 }

// price closes the turns whose cost a report made at a time includes.
func (s *share) price(at time.Time) {
	var open []time.Time
	for _, t := range s.open {
		if !at.IsZero() && t.After(at) {
			open = append(open, t)
		}
	}
	s.open = open
}

// Close ends the session: no report follows. inTurn says that it ended within a turn.
// What a client that was killed had no time to write is unseen, as the model may have
// answered it: that turn, if nothing of it was written; the end of a turn that stops at
// a call of a tool; and the turns in unwritten (see Unwritten), which names the delivery
// of each, or "".
func (c *Counter) Close(inTurn bool, unwritten ...string) {
	s := c.at(time.Time{})
	switch {
	case c.tail.told: // the client has ended in order: it has written everything
	case len(unwritten) > 0:
		for _, delivery := range unwritten {
			c.shareOf(delivery).sum.Unseen++
		}
	case inTurn && !s.asked && s.sum.Calls == 0:
		s.sum.Unseen++
	}
	if c.tail.calls && !c.asked && !c.again {
		c.shareOf(c.askedFor).sum.Unseen++
	}
	c.cutOff()
	c.untold()
	c.looseAt = time.Time{}
	if c.divide(); c.loose > 0 {
		c.at(time.Time{}).sum.Cost += c.loose
		c.loose = 0
	}
	c.unpriced()
}

// All returns what the session has spent so far.
func (c *Counter) All() Sum {
	all := Sum{Cost: c.loose}
	for _, s := range c.shares {
		all = all.Plus(s.sum)
	}
	return all
}

// On returns what the session has spent so far on a delivery.
func (c *Counter) On(delivery string) Sum {
	s := c.shares[delivery]
	if s == nil {
		return Sum{}
	}
	return s.sum
}

// Known reports whether the cost of the conversation before the session is known.
func (c *Counter) Known() bool { return c.known }

// Total returns the last reported cost of the conversation, without the part that is
// not assigned to an entry yet and that Drain therefore has not returned.
func (c *Counter) Total() float64 { return c.total - c.loose }

// Part is what was spent on one entry.
type Part struct {
	Of
	Sum
}

// Drain returns what was spent since the last call, by entry, in the order in which the
// entries were worked on.
func (c *Counter) Drain() []Part {
	c.divide()
	var parts []Part
	var order []string
	for i, delivery := range c.order {
		s := c.shares[delivery]
		if more := s.sum.Minus(s.told); more != (Sum{}) {
			parts = append(parts, Part{s.Of, more})
			s.told = s.sum
		}
		if i < len(c.order)-1 && c.forgotten(s) {
			delete(c.shares, delivery)
			continue
		}
		order = append(order, delivery)
	}
	c.order = order
	return parts
}

// forgotten reports whether nothing more can be counted for an entry.
func (c *Counter) forgotten(s *share) bool {
	if len(s.weights) > 0 || len(s.open) > 0 || (c.asked || c.again) && c.askedFor == s.Delivery {
		return false
	}
	for _, w := range c.works {
		if w.Delivery == s.Delivery {
			return false
		}
	}
	return !slices.Contains(c.hidden.compacted, s.Delivery)
}
