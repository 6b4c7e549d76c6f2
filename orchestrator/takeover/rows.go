package takeover

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/handwired/files"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// row is an entry as it comes into the store.
type row struct {
	entries.Adopted
	check check.Adopted
	// about is the hash by which people were asked about it, or "".
	about string
	// asked is the number of the check that it awaits, as its record has it.
	asked int
}

// plan makes rows of a former queue.
type plan struct {
	*former
	agent *config.Agent
	now   time.Time
	do    func(row) error

	accepted map[string]time.Time // :: id → when
	ends     map[string]bool      // delivery ids of dead letters
	seen     map[string]bool      // ids that have a row
	aside    map[string]bool      // delivery ids of what is set aside → it is somewhere else, too
	flying   bool                 // an entry is in flight
	retried  []row                // dead letters that are queued again
	notes    []string
}

// rows calls do for each entry of a former queue, in the order in which they get their numbers:
// what has ended, what is in flight, what is queued, what is set aside.
func (f *former) rows(a *config.Agent, now time.Time, do func(row) error) (notes []string, err error) {
	p := &plan{former: f, agent: a, now: now, do: do, accepted: map[string]time.Time{}, ends: map[string]bool{}, seen: map[string]bool{}, aside: map[string]bool{}}
	for _, id := range f.ids {
		p.accepted[id.ID] = id.At
	}
	for _, e := range f.apart {
		p.aside[e.DeliveryID] = false
	}
	for _, e := range f.stray {
		p.aside[e.DeliveryID] = false
	}
	for _, step := range []func() error{p.done, p.letters, p.flights, p.lines, p.suspended, p.rest} {
		if err := step(); err != nil {
			return p.notes, err
		}
	}
	return p.notes, nil
}

func (p *plan) note(format string, args ...any) {
	if len(p.notes) < 100 {
		p.notes = append(p.notes, fmt.Sprintf(format, args...))
	}
}

// give gives a row, whose id is known from then on.
func (p *plan) give(r row) error {
	r.Accepted = p.now
	if at, is := p.accepted[r.ID]; is && r.ID != "" {
		r.Accepted = at
	}
	if r.ID != "" {
		p.seen[r.ID] = true
	}
	if raw, err := line.Encode(line.Envelope{ID: r.ID, Source: r.Source, Checked: r.Checked, Prompt: r.Prompt}); err == nil && bytes.Equal(bytes.TrimSuffix(raw, []byte{'\n'}), r.Line) {
		r.Line = nil // the other columns make it
	}
	return p.do(r)
}

// done gives what is done and has replies that somebody waits for.
func (p *plan) done() error {
	for _, d := range p.awaited {
		r := row{}
		r.Delivery, r.EntryID, r.ID, r.Source, r.State, r.Lane = d.DeliveryID, d.EntryID, d.ID, d.Source, queue.Done, laneOf(d.Urgent)
		r.Attempt, r.Ended = d.Attempt, cmp.Or(d.AcknowledgedAt, p.now)
		r.Handover = queue.Handover{N: 1, Session: d.Session, At: d.DeliveredAt}
		r.Reply = &queue.Reply{Session: d.Session, Text: d.Reply, Cut: d.ReplyCut, Abandoned: d.Abandoned, At: r.Ended}
		if p.ends[d.DeliveryID] {
			continue // twice in the outbox
		}
		p.ends[d.DeliveryID] = true
		if err := p.give(r); err != nil {
			return err
		}
	}
	return nil
}

func laneOf(urgent bool) queue.Lane {
	if urgent {
		return queue.Urgent
	}
	return queue.Normal
}

// letters gives the dead letters, and what is lost.
func (p *plan) letters() error {
	queuedAgain, err := p.retryLines()
	if err != nil {
		return err
	}
	for i := range p.dead {
		d := &p.dead[i]
		if d.DeliveryID != "" && p.ends[d.DeliveryID] {
			continue // it was filed twice
		}
		p.ends[d.DeliveryID] = true
		r := p.letter(d, d.Urgent)
		if slices.Contains(p.begun.Retry, cmp.Or(d.DeliveryID, d.EntryID)) {
			again, err := r.Retry(0)
			switch {
			case queuedAgain[cmp.Or(d.DeliveryID, d.EntryID)]:
				continue
			case err == nil:
				r.Entry = again
				p.retried = append(p.retried, r)
				continue
			}
		}
		if err := p.give(r); err != nil {
			return err
		}
	}
	for _, l := range p.lanes {
		if l.gone != nil || l.lost == nil || p.ends[l.lost.DeliveryID] {
			continue
		}
		p.note("%s: at least %d bytes that were queued are lost", l.lost.Cause, l.lost.Length)
		if err := p.give(p.letter(l.lost, l.urgent)); err != nil {
			return err
		}
	}
	return nil
}

// retryLines are the dead letters that lines queue again, if that had begun.
func (p *plan) retryLines() (all map[string]bool, err error) {
	all = map[string]bool{}
	if len(p.begun.Retry) == 0 {
		return all, nil
	}
	for _, l := range p.lanes {
		if _, err := l.queued(func(e *files.Entry, _ *files.Dead) bool {
			if e != nil && bytes.Contains(e.Raw, []byte(`"retry_of":`)) {
				all[line.Decode(e.Raw, false).RetryOf] = true
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// letter is the row of a dead letter.
func (p *plan) letter(d *files.Dead, urgent bool) row {
	r := row{}
	r.Delivery, r.EntryID, r.ID, r.Source, r.State, r.Lane = d.DeliveryID, d.EntryID, d.ID, d.Source, queue.Dead, laneOf(urgent)
	r.Reason, r.Cause, r.Ended = d.Reason, d.Cause, cmp.Or(d.At, d.DeliveredAt, p.now)
	if r.Reason == "" {
		r.Reason = queue.Interrupted // the one reason of heartbeat-rs
	}
	r.Attempt, r.Repeats, r.Iteration = max(0, d.Attempts), max(0, d.Counted), max(0, d.Iterations)
	r.Line = d.Line()
	c := line.Decode(r.Line, d.StartOffset == 0)
	r.Prompt, r.Checked = c.Prompt, c.Checked
	if r.Prompt == "" {
		r.Prompt = strings.ToValidUTF8(cmp.Or(string(r.Line), d.Excerpt), "\uFFFD")
	}
	if len(r.Line) == 0 {
		r.Length = d.Length
	}
	if !d.DeliveredAt.IsZero() {
		r.Handover = queue.Handover{N: 1, At: d.DeliveredAt}
	}
	if d.Output != "" {
		r.Shown.Output = d.Output
	}
	if r.check.Demand = p.demandOf(r.ID); r.check.Demand != nil {
		r.Checked = r.Checked || r.check.Demand.Until != nil
	}
	return r
}

// flights give the entry in flight. Where each lane has one, that of the inbox is, and the other
// one may have been given.
func (p *plan) flights() error {
	for _, l := range slices.Backward(p.lanes) {
		f := l.flight
		if f == nil {
			continue
		}
		r := p.ofRecord(f, l.urgent)
		switch {
		case p.ends[f.DeliveryID]:
			continue // it was given up, and what remained was interrupted
		case p.last == f.DeliveryID && (!p.isChecked(&r) || p.book.isProven(f.DeliveryID)):
			continue // it is done, likewise
		case p.last == f.DeliveryID:
			p.note("the outbox calls entry %s done, and no check of it has passed: it is not done", f.DeliveryID)
		case l.byRs && l.flagged, f.Unwatched && f.State == queue.Taken,
			f.Unwatched && f.State == queue.Offered && (f.Transcript == "" || p.agent.OnOrphan != "retry" && p.agent.OnOrphan != "drop"):
			r.State = queue.Started // no hook reported tools
		case p.isMadeUp(&r, f):
			r.State = queue.Started // its session may have said that: nothing has found it unproven
		case l.byRs:
			r.State, r.Untouched, r.Handover = queue.Queued, true, queue.Handover{} // it reached nobody
		}
		if err := p.live(r); err != nil {
			return err
		}
	}
	return nil
}

// isMadeUp reports whether a record calls an entry unproven, and no check of it has answered: the
// agent can write it.
func (p *plan) isMadeUp(r *row, f *files.Record) bool {
	if r.State != queue.Unproven || r.Interrupted != "" || len(f.Aside) > 0 {
		return false
	}
	c := p.book.of(r.Delivery)
	return c == nil || c.Verdict == nil || c.Verdict.Passed || c.Verdict.Check != f.Check
}

// isChecked reports whether an entry is done only when a check of it has passed.
func (p *plan) isChecked(r *row) bool {
	d := p.demandOf(r.ID)
	return r.Checked || d != nil && d.Until != nil || d == nil && (p.agent.Until != nil || p.book.Until)
}

// live gives an entry in flight, or, if there is one, queues it as one that may have been given.
func (p *plan) live(r row) error {
	if r.State.IsInFlight() && p.flying {
		if again, err := r.GiveAgain(); err == nil {
			r.Entry = again
		}
	}
	p.flying = p.flying || r.State.IsInFlight()
	p.complete(&r)
	p.ends[r.Delivery] = true
	if _, is := p.aside[r.Delivery]; is {
		p.aside[r.Delivery] = true
	}
	return p.give(r)
}

// ofRecord is the row of an entry in flight, or set aside, as its record has it.
func (p *plan) ofRecord(f *files.Record, urgent bool) row {
	g := f.Given()
	r := row{asked: f.Check}
	r.Entry, r.Text, r.Shown = g.Entry, g.Text, g.Shown
	r.EntryID, r.Lane = line.Sum(g.Line), laneOf(urgent)
	r.Handover.N = 1
	if c := claimOf(f); c != nil {
		r.Reply = &queue.Reply{Session: c.Session, Text: c.Reply, Abandoned: c.Abandoned, At: c.Since}
		if r.State == queue.Checking {
			r.Claimed = c.Since
		}
	}
	if a, is := asideOf(f); is {
		r.Lane, r.Place = queue.Returning, cmp.Or(a.Answered, a.Since, p.now).UnixMilli()
	}
	return r
}

// complete adds to an entry that has not ended what the state directory knows of it. What that
// knows was queued, and handed over, counts: the agent writes the rest.
func (p *plan) complete(r *row) {
	handed := r.Prompt
	if text, is := p.textOf(r.ID); is && text != r.Prompt {
		p.note("entry %s said something else than what was queued: it says that again", r.Delivery)
		r.Prompt, r.Line = text, nil
	}
	d, c := p.demandOf(r.ID), p.book.of(r.Delivery)
	r.check.Demand = d
	r.Checked = r.Checked || d != nil && d.Until != nil
	until := p.agent.Until
	if d != nil {
		until = d.InForce(p.agent)
	}
	switch checked := r.Checked || r.State == queue.Checking || r.State == queue.Unproven; {
	case strings.TrimSpace(r.Prompt) == "":
		r.kill(queue.Torn, "its record holds no prompt", p.now)
		r.Prompt = strings.ToValidUTF8(string(r.Line), "\uFFFD")
	case c != nil && c.Entry != "" && c.Entry != r.EntryID:
		r.kill(queue.Forged, "its record is not of the line that was handed over", p.now)
	case checked && p.isUnknown(p.agent, d, c):
		r.kill(queue.NoCheck, "its work has to be checked, and nobody knows by what", p.now)
	default:
		r.prove(c, until, handed)
	}
}

// kill makes an entry a dead letter.
func (r *row) kill(why queue.Reason, cause string, now time.Time) {
	r.Entry, _ = r.EndAs(why, cause, now) // it has not ended
}

// textOf returns what the entry with an id was queued with, where that is known.
func (k *kept) textOf(id string) (string, bool) {
	if id == "" {
		return "", false
	}
	text, is := k.texts[id]
	if d, has := k.demands[id]; !is && has && d.Text != "" {
		return d.Text, true
	}
	return text, is
}

// lines give what is queued.
func (p *plan) lines() error {
	for _, l := range p.lanes {
		var failed error
		first := true
		take := func(e *files.Entry, d *files.Dead) bool {
			switch {
			case e == nil:
				if d.DeliveryID == "" || !p.ends[d.DeliveryID] {
					failed = p.give(p.letter(d, l.urgent))
				}
			default:
				failed = p.queued(l, e, first)
				first = false
			}
			return failed == nil
		}
		end, err := l.queued(take)
		if err = cmp.Or(failed, err); err != nil {
			return err
		}
		l.end = end
		if err := cmp.Or(l.late(take), failed); err != nil {
			return err
		}
	}
	for _, r := range p.retried {
		if err := p.give(r); err != nil {
			return err
		}
	}
	for _, l := range p.lanes {
		if err := p.lost(l); err != nil {
			return err
		}
	}
	return nil
}

// lost gives what was queued in the file that another one took the place of, and does not stand in
// that.
func (p *plan) lost(l *lane) error {
	if l.gone == nil {
		return nil
	}
	stands := map[string]bool{} // :: entry id
	if _, err := l.queued(func(e *files.Entry, _ *files.Dead) bool {
		if e != nil {
			stands[line.Sum(e.Raw)] = true
		}
		return true
	}); err != nil {
		return err
	}
	var failed error
	_, err := l.gone(func(e *files.Entry, _ *files.Dead) bool {
		if e == nil || stands[line.Sum(e.Raw)] || p.ends[e.DeliveryID] || p.ended[e.DeliveryID] {
			return true
		}
		p.ends[e.DeliveryID] = true
		r := row{}
		r.Delivery, r.EntryID, r.ID, r.Source, r.State, r.Lane = e.DeliveryID, line.Sum(e.Raw), e.ID, e.Source, queue.Queued, laneOf(l.urgent)
		r.Prompt, r.Line, r.Checked = e.Prompt, e.Raw, e.Checked
		if r.check.Demand = p.demandOf(r.ID); r.check.Demand != nil {
			r.Checked = r.Checked || r.check.Demand.Until != nil
		}
		r.kill(queue.Lost, "another file took the inbox's place, or it was removed", p.now)
		failed = p.give(r)
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// queued gives a line that is an entry; of the first one of a lane a session may have it.
func (p *plan) queued(l *lane, e *files.Entry, first bool) error {
	if e.DeliveryID != "" && p.ends[e.DeliveryID] {
		return nil // it is a dead letter, or in flight
	}
	r := row{}
	r.Delivery, r.EntryID, r.ID, r.Source, r.State, r.Lane = e.DeliveryID, line.Sum(e.Raw), e.ID, e.Source, queue.Queued, laneOf(l.urgent)
	r.Prompt, r.Line, r.Checked = e.Prompt, e.Raw, e.Checked
	if q := l.again; q.Is(e.Start, e.DeliveryID, r.EntryID) {
		l.again = nil
		r.Tries, r.Iteration, r.Most, r.Check = queue.Tries(q.Tries), q.Iteration, q.Most, q.Check
		r.Checked = r.Checked || q.Checked
		r.Shown = queue.Shown{Output: q.Output, Answers: q.Answers}
		p.elsewhere(q.DeliveryID)
	}
	p.elsewhere(e.DeliveryID)
	if slices.Contains(p.begun.Drop, e.DeliveryID) {
		r.kill(queue.DropByHand, "", p.now)
		return p.give(r)
	}
	if perhaps := first && l.damaged; perhaps || first && l.flight == nil && e.DeliveryID == p.work.Delivery {
		p.note("the record of the entry in flight is damaged, or gone: entry %s may have been handed over", e.DeliveryID)
		r.State, r.Handover = queue.Offered, queue.Handover{N: 1, At: p.now}
		if r.Attempt++; !perhaps {
			r.State, r.Attempt = queue.Started, max(r.Attempt, p.work.Attempt)
		}
		return p.live(r)
	}
	p.complete(&r)
	return p.give(r)
}

// elsewhere notes that an entry that is set aside is queued: setting it aside was interrupted.
func (p *plan) elsewhere(delivery string) {
	if _, is := p.aside[delivery]; is {
		p.aside[delivery] = true
	}
}

// suspended gives what is set aside.
func (p *plan) suspended() error {
	for _, e := range p.apart {
		c := p.book.of(e.DeliveryID)
		over := c != nil && c.Verdict != nil && c.Verdict.Applied && (c.Verdict.Passed || c.Verdict.GiveUp != "")
		if p.aside[e.DeliveryID] || p.ends[e.DeliveryID] || over {
			continue
		}
		p.ends[e.DeliveryID] = true
		r := p.ofRecord(e.Record, false)
		r.Conversation = e.conversation
		a, _ := asideOf(e.Record)
		if slices.Contains(p.begun.Drop, e.DeliveryID) {
			r.kill(queue.DropByHand, "", p.now)
		} else {
			if r.State == queue.Checking {
				r.State, r.Suspended, r.Lane, r.Place = queue.Suspended, cmp.Or(a.Since, p.now), queue.Normal, 0
			} else {
				r.State = queue.Queued
			}
			p.complete(&r)
		}
		if err := p.give(r); err != nil {
			return err
		}
	}
	for _, f := range p.stray {
		if p.aside[f.DeliveryID] || p.ends[f.DeliveryID] || p.ended[f.DeliveryID] {
			continue
		}
		p.ends[f.DeliveryID] = true
		p.note("entry %s waits for a person, and it is not known who was asked: it is handed over again", f.DeliveryID)
		r := p.ofRecord(f, false)
		if r.State == queue.Checking {
			r.Iteration++
			r.Shown = queue.Shown{Output: "It is not known who was asked to approve this."}
		}
		r.State, r.Claimed = queue.Queued, time.Time{}
		p.complete(&r)
		if err := p.give(r); err != nil {
			return err
		}
	}
	return nil
}

// rest gives what is gone, and what has to be known of it.
func (p *plan) rest() error {
	for _, l := range p.later {
		p.seen[l.ID] = true
	}
	for _, d := range p.gone(p.seen) {
		r := row{}
		r.ID, r.Source, r.State, r.Lane, r.Prompt = d.ID, "send", queue.Queued, queue.Normal, d.Text
		r.Checked, r.check.Demand = true, p.demandOf(d.ID)
		raw, err := line.Encode(line.Envelope{ID: r.ID, Source: r.Source, Checked: true, Prompt: r.Prompt})
		if err != nil {
			return err
		}
		r.EntryID = line.Sum(bytes.TrimSuffix(raw, []byte{'\n'}))
		r.kill(queue.Lost, "it has left the queue, and no check of it has passed", p.now)
		if err := p.give(r); err != nil {
			return err
		}
	}
	return nil
}

// row is that of a prompt whose time had not come.
func (l *later) row(k *kept, now time.Time) (row, error) {
	r := row{}
	r.ID, r.Source, r.State, r.Lane, r.NotBefore, r.Accepted, r.Prompt = l.ID, "send", queue.Later, laneOf(l.Urgent), cmp.Or(l.At, now), now, l.Text
	if r.check.Demand = k.demandOf(l.ID); r.check.Demand != nil {
		r.Checked = r.check.Demand.Until != nil
	}
	raw, err := line.Encode(line.Envelope{ID: r.ID, Source: r.Source, Checked: r.Checked, Prompt: r.Prompt})
	r.EntryID = line.Sum(bytes.TrimSuffix(raw, []byte{'\n'}))
	return r, err
}
