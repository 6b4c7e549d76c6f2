package proving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// asked waits for the answers to what the agent itself has asked in the turn that is
// over, or returns the verdict by which it learns them: the entry is handed over again
// with them, and nothing is checked before. That is no iteration of the guards.
func (r *run) asked(ctx context.Context, s subject, c ledger.Course, v ledger.Verdict) (told *ledger.Verdict, waits bool, err error) {
	if r.opt.Approvals == nil {
		return nil, false, nil
	}
	if last := c.Verdict; last != nil && last.Answers != "" && (last.Applied || s.flight.Iteration > last.Iteration) {
		if err := r.opt.Approvals.Told(last.Told); err != nil { // it was killed before
			return nil, false, err
		}
	}
	q, err := r.opt.Approvals.Asked(r.Key, v.Delivery)
	switch {
	case err != nil:
		return nil, false, err
	case q.Waits:
		r.waits(ctx, s, status.CheckAsked, time.Now().Add(askEvery), "waits for approval")
		return nil, true, nil
	case len(q.IDs) == 0:
		return nil, false, nil
	}
	v.By, v.Why, v.Answers, v.Told = "people", "it has asked for an approval", q.Answers, q.IDs
	c.Asks++
	c.Answered, c.Verdict = nil, &v
	return &v, false, s.book.Keep(c)
}

// shown is a hash of what approvers are shown about an entry whose check has passed.
func shown(f *inbox.InFlight, c ledger.Course) string {
	what := struct {
		Answered             ledger.Answered
		Prompt, Reply, Files string
	}{Prompt: f.Prompt(), Files: c.Files}
	if c.Answered != nil {
		what.Answered = *c.Answered
		what.Answered.At, what.Answered.Claimed = what.Answered.At.UTC(), what.Answered.Claimed.UTC()
	}
	if f.Claim != nil {
		what.Reply = f.Claim.Reply
	}
	data, err := json.Marshal(what)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// entryOf returns the entry of a delivery id that is in flight, or is set aside; nil if
// none is.
func (d *Desk) entryOf(a *config.Agent, key, delivery string) (*inbox.InFlight, error) {
	flight, err := queue.InFlight(a)
	if err != nil || flight != nil && flight.DeliveryID == delivery {
		return flight, err
	}
	all, err := ledger.Asides(d.opt.StateDir, key)
	for _, e := range all {
		if e.Flight.DeliveryID == delivery {
			return &e.Flight, nil
		}
	}
	return nil, err
}

// Unneeded returns why nobody needs the answer to a request of an agent any more, or
// "": with or without a scheduler, this is the one place that knows. It looks into the
// agent's queue.
func (d *Desk) Unneeded(a *config.Agent, key string, r approval.Request) (why string, err error) {
	switch {
	case r.Entry == "":
		return "", nil // it was asked in a turn of a person's
	case r.Name == "":
		given, err := queue.GivenUp(a, r.Entry)
		if given {
			why = "its prompt was given up"
		}
		return why, err
	}
	needed, err := d.needs(a, key, r)
	if err == nil && !needed {
		why = "nobody has to agree to that any more"
	}
	return why, err
}

// needs reports whether the entry in flight, or one that is set aside, waits for a
// person's yes to what the request shows.
func (d *Desk) needs(a *config.Agent, key string, r approval.Request) (bool, error) {
	flight, err := d.entryOf(a, key, r.Entry)
	if err != nil || flight == nil || flight.State != inbox.Checking || !d.Genuine(a, key, flight) {
		return false, err
	}
	book, err := d.Book(key)
	if err != nil {
		return false, err
	}
	c := book.Course(r.Entry)
	if c.Answered == nil || shown(flight, c) != r.About {
		return false, nil
	}
	until, _, err := d.nearest(a, flight, book, c)
	if err != nil || until == nil {
		return false, err
	}
	return c.Answered.Definition == ledger.Definition(until) && slices.Contains(until.Approve, r.Name), nil
}
