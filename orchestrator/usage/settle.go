package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/store"
)

// Rest counts, from the client's transcripts, what an ended session has spent beyond what is
// recorded of it, and returns that as a record; nil: nothing. Once that is written it is
// nothing. Nobody may write records of the session meanwhile. unwritten tells what no
// transcript has; nil: that is not known.
func Rest(ctx context.Context, in *store.Reader, session string, now time.Time, unwritten Unwritten) ([]Record, error) {
	var last Record
	var counted Sum
	var transcripts []Kept
	err := in.Read(ctx, func(v *store.View) error {
		return each(v, ofSession, []any{session}, func(_ int64, r Record) {
			counted, last = counted.Plus(r.Sum), r
			if k := r.Kept; k.Transcript != "" && !slices.ContainsFunc(transcripts, func(o Kept) bool { return o.Transcript == k.Transcript }) {
				transcripts = append(transcripts, k)
			}
		})
	})
	if err != nil || len(transcripts) == 0 {
		return nil, err
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
		return nil, failed
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
		return nil, nil
	}
	last.At, last.Number, last.Sum, last.Kept.Total = now, last.Number+1, rest, max(c.Total(), last.Kept.Total)
	last.Kept.Transcript, last.Kept.From = "", 0
	return []Record{last}, nil
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
