package usage

import (
	"errors"
	"slices"
	"time"

	"heartbeat/hook/client"
)

// Settle counts, from the client's transcripts, what an ended session has spent beyond
// what its shim recorded. A second call adds nothing. Nobody may append records of the
// agent at the same time. unwritten tells what no transcript has; nil: that is not known.
func Settle(stateDir, agent, session string, now time.Time, unwritten Unwritten) error {
	last, counted, transcripts, err := recorded(stateDir, agent, session)
	if err != nil || last.Session == "" || len(transcripts) == 0 {
		return err
	}
	c, r := Counter{}, Reader{Began: last.Kept.Began}
	c.Works(last.Of, last.Kept.Began)
	if !last.Kept.Unknown {
		c.Base(last.Kept.Total)
	}
	if whole, known := transcripts[0].took(); known {
		c.Took(whole)
	}
	var failed error
	for i, k := range transcripts {
		if i > 0 {
			c.Anew()
		}
		r.From(k.Transcript, k.From)
		failed = errors.Join(failed, r.LookAtAll(k.Transcript, now, &c))
	}
	if failed != nil {
		return failed
	}
	// Whether the shim saw a turn begin is not recorded: a delivery of which nothing is known counts as one.
	var lost []string
	if unwritten != nil {
		lost = unwritten(c.Tail())
	}
	c.Close(last.Delivery != "" && counted == (Sum{}), lost...)
	rest := c.All().Minus(counted)
	rest.Cost = 0
	if total := c.Total(); total > last.Kept.Total && !last.Kept.Unknown { // as the client wrote when it ended
		rest.Cost, rest.Unpriced = total-last.Kept.Total, 0
	}
	if rest = rest.NotLess(); rest == (Sum{}) {
		return nil
	}
	last.At, last.Sum, last.Kept.Total = now, rest, max(c.Total(), last.Kept.Total)
	return Append(stateDir, agent, last)
}

// recorded returns the last record of a session, the sum of all and the transcripts that
// they were counted from.
func recorded(stateDir, agent, session string) (last Record, counted Sum, transcripts []Kept, err error) {
	err = Read(stateDir, agent, time.Time{}, func(r Record) {
		if r.Session != session {
			return
		}
		counted = counted.Plus(r.Sum)
		last = r
		if k := r.Kept; k.Transcript != "" && !slices.ContainsFunc(transcripts, func(o Kept) bool { return o.Transcript == k.Transcript }) {
			transcripts = append(transcripts, k)
		}
	})
	return last, counted, transcripts, err
}

// took returns what a conversation had used before a session; false: that is not known.
func (k Kept) took() (whole client.Tokens, known bool) {
	if k.From == 0 {
		return whole, k.Began.IsZero() // otherwise the transcript begins with a copy
	}
	_, whole, known = Base(k.Transcript, k.From)
	return whole, known
}

// NotLess returns a sum without negative parts, which a truncated transcript or a missing
// record causes.
func (s Sum) NotLess() Sum {
	s.Turns, s.Calls, s.Unseen, s.Unpriced, s.Guessed = max(0, s.Turns), max(0, s.Calls), max(0, s.Unseen), max(0, s.Unpriced), max(0, s.Guessed)
	s.Input, s.Output = max(0, s.Input), max(0, s.Output)
	s.CacheRead, s.CacheWrite = max(0, s.CacheRead), max(0, s.CacheWrite)
	s.Cost = max(0, s.Cost)
	return s
}
