package entries

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Ref names a hand-over of an entry: what is said of another one is refused (queue.ErrStale).
type Ref struct {
	Agent    string
	Delivery string
	Handover int64
}

// RefOf names the present hand-over of an entry.
func RefOf(e *queue.Entry) Ref { return Ref{e.Agent, e.Delivery, e.Handover.N} }

// Offer hands over the entry of an agent that is first in its queue. When the transaction is
// committed, it may be given to the session. The error matches ErrEmpty or ErrInFlight.
func Offer(c *store.Change, agent string, to queue.Handover) (*queue.Given, error) {
	return offer(c, agent, to, false)
}

// offer is Offer for a session whose terms may say that its entries are checked.
func offer(c *store.Change, agent string, to queue.Handover, checked bool) (*queue.Given, error) {
	now, err := InFlight(&c.View, agent)
	if err != nil {
		return nil, err
	}
	if now != nil {
		return nil, fmt.Errorf("cannot hand over an entry of %s: %w", agent, ErrInFlight)
	}
	e, err := one(&c.View, `agent = $1 AND state = 'queued' ORDER BY lane, place LIMIT 1`, agent)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fmt.Errorf("cannot hand over an entry of %s: %w", agent, ErrEmpty)
	}
	return give(c, *e, func(e queue.Entry) (queue.Entry, error) {
		e.Checked = e.Checked || checked
		return e.Offer(to)
	})
}

// OfferAgain hands over the entry in flight again: see queue.Entry.OfferAgain.
func OfferAgain(c *store.Change, at Ref, to queue.Handover) (*queue.Given, error) {
	return offerAgain(c, at, to, false)
}

func offerAgain(c *store.Change, at Ref, to queue.Handover, checked bool) (*queue.Given, error) {
	e, err := at.find(&c.View)
	if err != nil {
		return nil, err
	}
	return give(c, *e, func(e queue.Entry) (queue.Entry, error) {
		e.Checked = e.Checked || checked
		return e.OfferAgain(to)
	})
}

func give(c *store.Change, e queue.Entry, step func(queue.Entry) (queue.Entry, error)) (*queue.Given, error) {
	after, err := step(e)
	if err != nil {
		return nil, err
	}
	g, err := GivenOf(&c.View, &after) // what cannot be read is not handed over
	if err != nil {
		return nil, err
	}
	return g, move(c, e, after, change{at: after.Handover.At})
}

// find returns the entry whose present hand-over a Ref names.
func (r Ref) find(v *store.View) (*queue.Entry, error) {
	e, err := Find(v, r.Agent, r.Delivery)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("cannot change entry %s: %w", r.Delivery, ErrNotFound)
	case !e.Is(r.Delivery, r.Handover):
		return nil, fmt.Errorf("cannot change hand-over %d of entry %s, which was handed over %d times: %w", r.Handover, r.Delivery, e.Handover.N, queue.ErrStale)
	}
	return e, nil
}

// Take has an entry take a step at a time, if its present hand-over is the named one.
func Take(c *store.Change, at Ref, now time.Time, step func(queue.Entry) (queue.Entry, error)) (*queue.Entry, error) {
	e, err := at.find(&c.View)
	if err != nil {
		return nil, err
	}
	return take(c, *e, change{at: now}, step)
}

// TakeBy is Take for an entry that is named by its key, whoever has it.
func TakeBy(c *store.Change, k queue.Key, now time.Time, step func(queue.Entry) (queue.Entry, error)) (*queue.Entry, error) {
	return takeBy(c, k, change{at: now}, step)
}

func takeBy(c *store.Change, k queue.Key, by change, step func(queue.Entry) (queue.Entry, error)) (*queue.Entry, error) {
	e, err := Get(&c.View, k)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fmt.Errorf("cannot change entry %d of %s: %w", k.Seq, k.Agent, ErrNotFound)
	}
	return take(c, *e, by, step)
}

func take(c *store.Change, e queue.Entry, by change, step func(queue.Entry) (queue.Entry, error)) (*queue.Entry, error) {
	after, err := step(e)
	if err != nil {
		return nil, err
	}
	return &after, move(c, e, after, by)
}

// change says of a step what the entry does not.
type change struct {
	at time.Time
	// outcome is what a hand-over has ended with that this ends; "": the entry tells.
	outcome string
	// end is the number of the end of an entry that has ended elsewhere; 0: the next.
	end int64
}

// move writes what a step has made of an entry, if its row is still as it was read.
func move(c *store.Change, before, after queue.Entry, by change) error {
	if after == before && by.end == 0 {
		return nil
	}
	args := append(values(&after), string(before.State), before.Attempt, before.Handover.N)
	n := len(args)
	rows, err := c.Do(fmt.Sprintf(`UPDATE entries SET %s WHERE agent = $1 AND seq = $2 AND delivery = $3 AND entry_id = $4 AND id = $5 AND source = $6
		AND state = $%d AND attempt = $%d AND handover = $%d`, set, n-2, n-1, n), args...)
	if err == nil && rows != 1 {
		err = fmt.Errorf("cannot change entry %s: %w", before.Delivery, queue.ErrStale)
	}
	if err == nil {
		err = number(c, before.State, after, by.end)
	}
	if err == nil {
		err = forget(c, before, after)
	}
	if err != nil {
		return err
	}
	return moveHandover(c, before, after, by)
}

// forget removes what is not of an entry any more: of one that begins as if it were new what its
// checks have said, of one whose check is void the verdict that was not carried out.
func forget(c *store.Change, before, after queue.Entry) error {
	if isAsNew(before, after) {
		for _, table := range []string{"shown", "passes", "unanswered_checks"} {
			if _, err := c.Do(`DELETE FROM `+table+` WHERE agent = $1 AND seq = $2`, after.Agent, after.Seq); err != nil {
				return err
			}
		}
	}
	if before.State == queue.Checking && after.State.IsInSession() {
		_, err := c.Do(`DELETE FROM verdicts WHERE agent = $1 AND seq = $2 AND check_no = $3`, after.Agent, after.Seq, before.Check)
		return err
	}
	return nil
}

// isAsNew reports whether a step has queued an entry again as if it were new.
func isAsNew(before, after queue.Entry) bool {
	return after.State == queue.Queued && after.Attempt == 0 && after.Iteration == 0 && (before.State == queue.Dead || before.Iteration > 0)
}

// moveHandover keeps the table of hand-overs in line with a step.
func moveHandover(c *store.Change, before, after queue.Entry, by change) error {
	now := after.Handover
	switch {
	case now.N != before.Handover.N:
		if before.State.IsInFlight() {
			if err := endHandover(c, before, "again", by.at); err != nil {
				return err
			}
		}
		return beginHandover(c, after)
	case !before.State.IsInFlight():
		return nil
	case after.State == before.State && now == before.Handover:
		return nil
	case after.State.IsInSession() && !before.State.IsInSession(): // its check is void
		_, err := c.Do(`UPDATE handovers SET prompt_id = $4, ended = 0, outcome = '' WHERE agent = $1 AND seq = $2 AND n = $3`, after.Agent, after.Seq, now.N, now.PromptID)
		return err
	}
	came := after.State
	if !came.IsInSession() {
		came = after.Interrupted // what Recover has found
	}
	if _, err := c.Do(`UPDATE handovers SET prompt_id = $4, file = $5, place = $6, came = CASE WHEN $7 = '' THEN came ELSE $7 END WHERE agent = $1 AND seq = $2 AND n = $3`,
		after.Agent, after.Seq, now.N, now.PromptID, now.File, now.Offset, string(came)); err != nil || after.State.IsInSession() {
		return err
	}
	outcome := by.outcome
	switch {
	case outcome != "":
	case before.State == queue.Offered && !after.State.HasEnded() && after.State != queue.Checking:
		outcome = "withdrawn"
	default:
		outcome = string(after.State)
	}
	return endHandover(c, after, outcome, by.at)
}

// beginHandover adds the row of an entry's hand-over.
func beginHandover(c *store.Change, e queue.Entry) error {
	h, came := e.Handover, e.State
	if !came.IsInSession() {
		came = queue.Started
	}
	_, err := c.Do(`INSERT INTO handovers (agent, seq, n, session, via, at, prompt_id, transcript, place, file, unmarked, came, ended, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, '')`,
		e.Agent, e.Seq, h.N, h.Session, string(h.Via), store.Millis(h.At), h.PromptID, h.Transcript, h.Offset, h.File, h.Unmarked, string(came))
	return err
}

// endHandover records how the present hand-over of an entry was over, if that is not recorded.
func endHandover(c *store.Change, e queue.Entry, outcome string, at time.Time) error {
	_, err := c.Do(`UPDATE handovers SET ended = $4, outcome = $5 WHERE agent = $1 AND seq = $2 AND n = $3 AND ended = 0`, e.Agent, e.Seq, e.Handover.N, store.Millis(at), outcome)
	return err
}

// Acknowledge ends the entry of a hand-over, with what its session has said.
func Acknowledge(c *store.Change, at Ref, r queue.Reply) (*queue.Entry, error) {
	e, err := Take(c, at, r.At, func(e queue.Entry) (queue.Entry, error) { return e.Acknowledge(r.At) })
	if err != nil {
		return nil, err
	}
	return e, writeReply(c, e.Key, r)
}

// Claim has the work on the entry of a hand-over checked, with what its session has said.
func Claim(c *store.Change, at Ref, r queue.Reply) (*queue.Entry, error) {
	var was queue.State
	e, err := Take(c, at, r.At, func(e queue.Entry) (queue.Entry, error) {
		was = e.State
		return e.Claim(r.At)
	})
	if err != nil || !was.IsInSession() {
		return e, err
	}
	return e, writeReply(c, e.Key, r)
}

func writeReply(c *store.Change, k queue.Key, r queue.Reply) error {
	r = r.Within()
	_, err := c.Do(`INSERT INTO replies (agent, seq, session, reply, cut, abandoned, at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (agent, seq) DO UPDATE SET session = excluded.session, reply = excluded.reply, cut = excluded.cut, abandoned = excluded.abandoned, at = excluded.at`,
		k.Agent, k.Seq, r.Session, r.Text, r.Cut, strings.Join(r.Abandoned, "\n"), store.Millis(r.At))
	return err
}

// Verdict is what a check has found, with what is kept of it.
type Verdict struct {
	queue.Verdict
	queue.Shown
	Iteration int    // what people call it
	By, Why   string // what decided, and what the check ended with
	Took      time.Duration
	At        time.Time
	// Worked is how long the agent worked on the iteration; Said a digest of what its check
	// printed, without digits; Same is true if the agent's files were before the check what they
	// were after the check before; Files is a digest of them after it, or "".
	Worked      time.Duration
	Said, Files string
	Same        bool
	// Told is true if nothing was checked: the agent is told what people have answered.
	Told bool
}

// VerdictsOf returns the verdicts about an entry since it was queued, or queued again by a
// person, the first one first.
func VerdictsOf(v *store.View, k queue.Key) (all []Verdict, err error) {
	err = v.Each(`SELECT check_no, iteration, passed, reason, by_whom, why, took, at, worked, said, files, same, told FROM verdicts WHERE agent = $1 AND seq = $2 ORDER BY check_no`,
		[]any{k.Agent, k.Seq}, func(row store.Scan) error {
			var d Verdict
			var took, at, worked int64
			err := row(&d.Check, &d.Iteration, &d.Passed, &d.GiveUp, &d.By, &d.Why, &took, &at, &worked, &d.Said, &d.Files, &d.Same, &d.Told)
			d.Took, d.At, d.Worked = time.Duration(took)*time.Millisecond, store.Time(at), time.Duration(worked)*time.Millisecond
			if d.Iteration <= 1 {
				all = nil
			}
			all = append(all, d)
			return err
		})
	return all, err
}

// Judge carries out a verdict about the entry with a key, one that Record has recorded before
// included. The error matches queue.ErrStale if it is about another check than the one that is
// awaited.
func Judge(c *store.Change, k queue.Key, v Verdict) (*queue.Entry, error) {
	asNew := false
	e, err := TakeBy(c, k, v.At, func(e queue.Entry) (after queue.Entry, err error) {
		if e.Cancel == queue.CancelAgain && !v.Passed {
			if v.Place, err = NextNumber(c, k.Agent); err != nil {
				return e, err
			}
		}
		after, err = e.Judge(v.Verdict, v.At)
		asNew = isAsNew(e, after)
		return after, err
	})
	switch {
	case err != nil:
		return nil, err
	case asNew:
		return e, writeVerdict(c, k, v)
	}
	return e, Record(c, k, v)
}

// Record records a verdict that is carried out later: it stands until then.
func Record(c *store.Change, k queue.Key, v Verdict) error {
	if err := writeVerdict(c, k, v); err != nil {
		return err
	}
	return writeShown(c, k, v.Shown)
}

func writeVerdict(c *store.Change, k queue.Key, v Verdict) error {
	_, err := c.Do(`INSERT INTO verdicts (agent, seq, check_no, iteration, passed, reason, by_whom, why, took, at, worked, said, files, same, told)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (agent, seq, check_no) DO NOTHING`,
		k.Agent, k.Seq, v.Check, v.Iteration, v.Passed, string(v.GiveUp), v.By, v.Why, v.Took.Milliseconds(), store.Millis(v.At),
		v.Worked.Milliseconds(), v.Said, v.Files, v.Same, v.Told)
	return err
}

func writeShown(c *store.Change, k queue.Key, s queue.Shown) error {
	s = s.Within()
	_, err := c.Do(`INSERT INTO shown (agent, seq, output, answers) VALUES ($1, $2, $3, $4)
		ON CONFLICT (agent, seq) DO UPDATE SET output = excluded.output, answers = excluded.answers`, k.Agent, k.Seq, s.Output, s.Answers)
	return err
}

// Suspend takes the entry with a key, whose check has passed, out of the queue's order until a
// person answers. conversation is the client's in which it was worked on, or "". The error matches
// ErrNoRoom if too many wait already.
func Suspend(c *store.Change, k queue.Key, check int, conversation string, now time.Time) (*queue.Entry, error) {
	waiting, err := Suspended(&c.View, k.Agent)
	if err != nil {
		return nil, err
	}
	if len(waiting) >= queue.MostSuspended {
		return nil, fmt.Errorf("cannot suspend an entry of %s: %w", k.Agent, ErrNoRoom)
	}
	return TakeBy(c, k, now, func(e queue.Entry) (queue.Entry, error) { return e.Suspend(check, conversation, now) })
}

// Recover decides about the entry of an agent that is in flight, whose session is gone, and
// returns the entry with the state that the decision went by, and what it has become. ask says
// what is known of it, in the transcript and otherwise; reply is what its session has said where
// its turn is demonstrably over.
func Recover(c *store.Change, agent string, ask func(queue.Entry) (i queue.Interruption, reply queue.Reply)) (before, after *queue.Entry, outcome queue.Outcome, err error) {
	if before, err = InFlight(&c.View, agent); before == nil || err != nil {
		return nil, nil, queue.NothingToRecover, err
	}
	place, err := NextNumber(c, agent)
	if err != nil {
		return nil, nil, "", err
	}
	i, reply := ask(*before)
	got, outcome := before.Recover(i, place)
	if err := move(c, *before, got, change{at: i.Now, outcome: string(outcome)}); err != nil {
		return nil, nil, "", err
	}
	if i.Finished && before.State.IsInSession() && (outcome == queue.LeftChecking || outcome == queue.StaleOrphanDeleted) {
		err = writeReply(c, got.Key, reply)
	}
	return before, &got, outcome, err
}

// WakeDue queues the entries whose time has come, at most so many, and returns their agents.
func WakeDue(c *store.Change, now time.Time, most int) ([]string, error) {
	due, err := many(&c.View, `state = 'later' AND not_before <= $1 ORDER BY not_before, agent, seq LIMIT $2`, store.Millis(now), most)
	if err != nil {
		return nil, err
	}
	var agents []string
	for _, e := range due {
		place, err := NextNumber(c, e.Agent)
		if err != nil {
			return nil, err
		}
		if _, err := take(c, e, change{at: now}, func(e queue.Entry) (queue.Entry, error) { return e.Wake(place) }); err != nil {
			return nil, err
		}
		if !slices.Contains(agents, e.Agent) {
			agents = append(agents, e.Agent)
		}
	}
	return agents, nil
}

// NextDue returns when the next entry's time comes; zero: there is none.
func NextDue(v *store.View) (time.Time, error) {
	var at int64
	_, err := v.One(`SELECT not_before FROM entries WHERE state = 'later' ORDER BY not_before LIMIT 1`, nil, &at)
	return store.Time(at), err
}

// Drop gives up entries that no session has, named by their delivery ids or their senders' ids,
// and returns them. What a name fits that has ended is left alone; what is in flight, too, and
// refused says why (queue.ErrState). The error is the store's.
func Drop(c *store.Change, agent string, now time.Time, ids ...string) (dropped []queue.Entry, refused []error, err error) {
	return each(c, agent, now, ids, `ended = 0 AND (delivery = $2 OR id = $2)`, func(e queue.Entry) (queue.Entry, error) { return e.Drop(now) })
}

// Retry queues dead entries again as if they were new, named by their delivery ids, their
// senders' ids or their entry ids, and returns them. What cannot be retried stays, and refused
// says why (queue.ErrState). The error is the store's.
func Retry(c *store.Change, agent string, now time.Time, ids ...string) (queued []queue.Entry, refused []error, err error) {
	return each(c, agent, now, ids, `state = 'dead' AND (delivery = $2 OR id = $2 OR entry_id = $2)`, func(e queue.Entry) (queue.Entry, error) {
		text, err := TextOf(&c.View, e.Key)
		switch blank := strings.TrimSpace(text.Prompt) == ""; {
		case err == nil && !blank:
		case err == nil, errors.Is(err, ErrDamaged), errors.Is(err, ErrNotFound):
			return e, fmt.Errorf("cannot retry entry %s, whose text is not here: %w", e.Delivery, queue.ErrState)
		default:
			return e, err
		}
		place, err := NextNumber(c, agent)
		if err != nil {
			return e, err
		}
		return e.Retry(place)
	})
}

// each has those of an agent's entries that a condition and ids name take a step. A step that is
// refused because of the entry's state leaves it alone.
func each(c *store.Change, agent string, now time.Time, ids []string, where string, step func(queue.Entry) (queue.Entry, error)) (done []queue.Entry, refused []error, err error) {
	for _, id := range ids {
		if id == "" {
			continue
		}
		found, err := many(&c.View, `agent = $1 AND `+where+` ORDER BY seq`, agent, id)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range found {
			after, err := take(c, e, change{at: now}, step)
			if errors.Is(err, queue.ErrState) {
				refused = append(refused, err)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			done = append(done, *after)
		}
	}
	return done, refused, nil
}

// Transfer moves an entry that no session has to the end of another agent's queue. Its delivery
// id stays.
func Transfer(c *store.Change, k queue.Key, to string) (*queue.Entry, error) {
	e, err := Get(&c.View, k)
	if err != nil {
		return nil, err
	}
	if e == nil || e.State != queue.Queued && e.State != queue.Later {
		return nil, fmt.Errorf("cannot move entry %d of %s to %s: %w", k.Seq, k.Agent, to, queue.ErrState)
	}
	seq, err := NextNumber(c, to)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		if _, err := c.Do(`UPDATE `+table+` SET agent = $3, seq = $4 WHERE agent = $1 AND seq = $2`, k.Agent, k.Seq, to, seq); err != nil {
			return nil, err
		}
	}
	if _, err := c.Do(`UPDATE entries SET place = $3 WHERE agent = $1 AND seq = $2`, to, seq, seq); err != nil {
		return nil, err
	}
	if e.ID != "" { // the agent that had it goes on remembering it, too
		if _, err := c.Do(`INSERT INTO ids (agent, id, seq, at) VALUES ($1, $2, $3, $4) ON CONFLICT (agent, id) DO UPDATE SET seq = excluded.seq`, to, e.ID, seq, store.Millis(e.Accepted)); err != nil {
			return nil, err
		}
	}
	return Get(&c.View, queue.Key{Agent: to, Seq: seq})
}

// tables have a row, or several, of an entry, under its key: all that have the columns agent and
// seq but ids and those of whole queues. The entry's own is the last.
var tables = []string{
	"texts", "handovers", "replies", "shown", "verdicts",
	"demands", "demand_words", "passes", "unanswered_checks", // package check's
	"entries",
}

// Prune removes entries that ended before a time, at most so many, and returns how many. Dead
// ones stay until Purge. Their ids are remembered on their own (ForgetIDs).
func Prune(c *store.Change, before time.Time, most int) (gone int64, err error) {
	return remove(c, `ended > 0 AND ended < $1 AND state <> 'dead' ORDER BY ended LIMIT $2`, store.Millis(before), most)
}

// Purge removes dead entries of an agent that ended until a time, at most so many, and returns
// how many.
func Purge(c *store.Change, agent string, until time.Time, most int) (gone int64, err error) {
	gone, err = remove(c, `agent = $1 AND state = 'dead' AND n > 0 AND ended <= $2 ORDER BY n LIMIT $3`, agent, store.Millis(until), most)
	if err == nil && gone > 0 {
		_, err = c.Do(`UPDATE queues SET gone = gone + $2 WHERE agent = $1`, agent, gone)
	}
	return gone, err
}

func remove(c *store.Change, which string, args ...any) (gone int64, err error) {
	for _, table := range tables {
		gone, err = c.Do(`DELETE FROM `+table+` WHERE (agent, seq) IN (SELECT agent, seq FROM entries WHERE `+which+`)`, args...)
		if err != nil {
			return 0, err
		}
	}
	return gone, nil
}
