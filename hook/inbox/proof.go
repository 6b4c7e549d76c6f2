package inbox

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/queue"

	form "heartbeat/queue/line"
)

// Proving is what is known of the checks of an entry in flight.
type Proving struct {
	// Iteration counts the hand-overs that a check has followed, and the present one:
	// from 1; 0: nothing is checked. An iteration is no attempt.
	Iteration int `json:"iteration,omitempty"`
	// Most is how many iterations there may be, as the last verdict told; 0: any
	// number.
	Most int `json:"most,omitempty"`
	// Check is the number of the last check that was asked for, from 1. A verdict names
	// it; a check that is void has used its number up.
	Check int `json:"check,omitempty"`
	// Claim is what the session said when it claimed to be done, while that is checked.
	Claim *Claim `json:"claim,omitempty"`
	// Output is what the last check said, as queue.CleanOutput leaves it. The text of the next
	// hand-over holds it, and the proof that it arrived needs it again.
	Output string `json:"output,omitempty"`
	// Answers, if not "", is what the next hand-over holds instead: the answers to what
	// the agent has asked people in the last one.
	Answers string `json:"answers,omitempty"`
	// Interrupted is the state in which its session was interrupted, if the check is
	// made for that reason: if it does not pass, Recover decides by this state.
	Interrupted State `json:"interrupted,omitempty"`
}

// Claim is what a session said of an entry when its turn was over.
type Claim struct {
	Session   string    `json:"session,omitempty"`
	Reply     string    `json:"reply,omitempty"`
	Abandoned []string  `json:"abandoned,omitempty"`
	Since     time.Time `json:"since"`
}

// Proven is a verdict as the outbox keeps it.
type Proven struct {
	By        string `json:"by,omitempty"`
	Iteration int    `json:"iteration"`
	TookMS    int64  `json:"took_ms,omitempty"`
}

// Verdict says what a check has found about the entry in flight.
type Verdict struct {
	// Delivery and Check name what was checked: InFlight.DeliveryID, Proving.Check.
	Delivery string
	Check    int
	// Entry is the hash of the line that was checked, InFlight.EntryID; "" where any is
	// meant. A record that has another one since is not what was checked.
	Entry string
	// NeverAside says that the entry was never set aside: what the record says of that
	// does not count.
	NeverAside bool
	// Again says that the entry has passed before, and was recorded as done: it only
	// leaves the queue.
	Again bool
	// Line is, for one that is given up as Forged, what was handed over, where the inbox
	// does not tell; nil: it does.
	Line []byte
	// Passed says that the entry is done.
	Passed bool
	// GiveUp, if not "" and not Passed, makes it a dead letter for this reason, with
	// Cause. Otherwise it is to be handed over again.
	GiveUp Reason
	Cause  string
	// Output is what the check said; it is cleaned and cut (queue.CleanOutput).
	Output string
	// Answers, if not "", says that nothing was checked: the entry is handed over again
	// with them.
	Answers string
	// Most is how many iterations there may be; 0: any number.
	Most int
	// Iteration is the number that the outbox record has; 0: the one in flight knows.
	Iteration int
	// Records, if not nil, is called with the outbox record before it is written. If it
	// fails, nothing is.
	Records func(Delivery) error
	// By says what has proved it, Took how long that took.
	By   string
	Took time.Duration
	Now  time.Time
}

// Limits of what a record keeps of a claim and of a verdict.
const (
	// MaxShown is how many bytes of a check's output are kept and handed over.
	MaxShown = queue.MaxShown
	// MaxAnswers is how many bytes of answers are kept and handed over at once.
	MaxAnswers   = 16 << 10
	maxAbandoned = 32
	maxTask      = 256
)

func (p *Proving) valid() bool {
	return p.Iteration >= 0 && p.Check >= 0 && p.Most >= 0 && len(p.Output) <= MaxShown && len(p.Answers) <= MaxAnswers &&
		(p.Interrupted == "" || p.Interrupted.rank() > 0)
}

// rests returns what is remembered while the entry is queued again.
func (p Proving) rests() Proving {
	p.Claim, p.Interrupted = nil, ""
	return p
}

// claim returns what an acknowledgement says, within what a record may hold.
func (a Acknowledgement) claim() *Claim {
	c := &Claim{Session: a.Session, Since: a.Now.UTC()}
	if a.Now.IsZero() {
		c.Since = time.Now().UTC()
	}
	// A little more than the outbox keeps, so that it can tell that it was cut.
	c.Reply, _ = cutText(strings.ToValidUTF8(a.Reply, "\uFFFD"), MaxReply+utf8.UTFMax)
	for _, task := range a.Abandoned[:min(maxAbandoned, len(a.Abandoned))] {
		task, _ = cutText(strings.ToValidUTF8(task, "\uFFFD"), maxTask)
		c.Abandoned = append(c.Abandoned, task)
	}
	return c
}

// asks has the work checked that a session claims to have done.
func (f *flight) asks(c *Claim) {
	f.State, f.Claim, f.Failure = Checking, c, ""
	f.Checked, f.Iteration = true, max(1, f.Iteration)
	f.Check++
}

// Check records that a session claims to be done with the entry in flight, which is
// checked from then on: only Verdict finishes it. If that is recorded already, it
// does nothing.
func (h *Held) Check(a Acknowledgement) (*InFlight, error) {
	return h.carrier().alter("have a check made of", func(f *flight) error {
		if f.State != Checking && f.State != Unproven {
			f.asks(a.claim())
		}
		return nil
	})
}

// Void records that a session works on the entry in flight again although nobody has
// handed it over again: what is being checked is not what the session leaves. The
// next claim asks for another check, of the same iteration. If nothing is being
// checked, it does nothing. The result is nil if a verdict has ended the entry and was
// interrupted: whoever has decided it repeats it.
func (h *Held) Void() (*InFlight, error) { return h.carrier().void() }

func (h *heldLane) void() (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	f := v.flight
	switch {
	case f == nil:
		return nil, fmt.Errorf("cannot void a check: %w", ErrNothingInFlight)
	case f.State != Checking:
		return v.record(), nil
	}
	if over, err := h.over(f.DeliveryID); err != nil {
		return nil, err
	} else if over {
		return nil, nil
	}
	f.State, f.Claim = Started, nil
	f.Check++
	return v.record(), h.own(f)
}

// Verdict finishes the entry in flight, or one that is set aside, by what a check has
// found: it is done, as Acknowledge does it, and the result is its record; it is a dead
// letter; or it is unproven, to be handed over again (Reoffer). Nothing else finishes an
// entry that is checked.
//
// It can be interrupted and called again: a verdict that was carried out changes
// nothing. The error matches ErrStale if the verdict is about another entry or
// another check than the one that is awaited.
func (h *Held) Verdict(v Verdict) (*Delivery, error) { return h.carrier().apply(v) }

func (h *heldLane) apply(v Verdict) (*Delivery, error) {
	view, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer view.close()
	f := view.flight
	switch {
	case f == nil || f.DeliveryID != v.Delivery:
		if d, done, err := h.held.answered(v); done || err != nil {
			return d, err
		}
		return nil, h.carriedOut(v)
	}
	switch awaited, err := f.awaits(v); {
	case err != nil || !awaited:
		return nil, err
	}
	if f.apart() && v.NeverAside {
		f.Aside = nil
		h.locateFlight(view.source, f)
	}
	switch {
	case v.Passed && v.Again:
		return nil, h.pass(view)
	case v.Passed:
		return h.pronounce(view, v)
	case v.GiveUp != "":
		if v.GiveUp == Forged {
			if err := h.unforge(view, v); err != nil {
				return nil, err
			}
			f = view.flight
		}
		f.unproven(v)
		return nil, h.bury(view, v.GiveUp, Interruption{Cause: v.Cause, Now: v.now()})
	}
	f.own()
	f.next(v)
	return nil, h.writeFlight(f)
}

// pronounce finishes the entry in flight, which has passed.
func (h *heldLane) pronounce(view *view, v Verdict) (*Delivery, error) {
	d := view.flight.proven(v)
	done, err := h.recorded(d)
	if err == nil && !done {
		err = v.records(d)
	}
	if err != nil {
		return nil, err
	}
	return h.finish(view, d)
}

func (v Verdict) records(d *Delivery) error {
	if v.Records == nil {
		return nil
	}
	return v.Records(*d)
}

// awaits reports whether a verdict is the one that the entry waits for; false: it was
// carried out before.
func (f *flight) awaits(v Verdict) (bool, error) {
	switch {
	case v.Entry != "" && v.Entry != f.EntryID:
		return false, fmt.Errorf("cannot apply the verdict of check %d of entry %s, whose line is another one now: %w", v.Check, v.Delivery, ErrStale)
	case f.Check != v.Check:
		return false, fmt.Errorf("cannot apply the verdict of check %d of entry %s, which has come to check %d: %w",
			v.Check, v.Delivery, f.Check, ErrStale)
	case f.State != Checking && (v.Passed || v.GiveUp != ""): // that would have ended it
		return false, fmt.Errorf("cannot apply the verdict of check %d of entry %s, which another one has answered: %w", v.Check, v.Delivery, ErrStale)
	}
	return f.State == Checking, nil
}

// next makes the entry one that is to be handed over again, after a verdict.
func (f *flight) next(v Verdict) {
	f.unproven(v)
	f.State, f.Claim = Unproven, nil
	f.Iteration++
}

// unforge puts what was handed over in the place of a record that somebody has made: the
// entry at the cursor, or for one that was set aside the line that the caller knows.
func (h *heldLane) unforge(v *view, by Verdict) error {
	was := v.flight
	if by.Line != nil {
		d := form.Decode(by.Line, was.StartOffset == 0)
		was.raw, was.EntryID, was.ID, was.Source = by.Line, form.Sum(by.Line), d.ID, d.Source
		return nil
	}
	e, err := h.firstEntry(v.source, v.verdict.cursor, v.verdict.meta.Generation)
	if err != nil || e == nil {
		return err
	}
	f := h.newFlight(e, v.verdict.meta.Generation)
	f.Offering, f.Tries, f.Proving, f.State, f.DeliveredAt = was.Offering, was.Tries, was.Proving, was.State, was.DeliveredAt
	v.flight = f
	return nil
}

// unproven keeps the output and answers of a verdict that did not pass.
func (f *flight) unproven(v Verdict) {
	f.Renamed = false
	f.Output, f.Most = queue.CleanOutput(v.Output), max(0, v.Most)
	f.Answers, _ = cutText(strings.ToValidUTF8(v.Answers, "\uFFFD"), MaxAnswers)
}

func (v Verdict) now() time.Time {
	if v.Now.IsZero() {
		return time.Now()
	}
	return v.Now
}

// over reports whether an entry was acknowledged last, or is a dead letter.
func (q *Queue) over(delivery string) (bool, error) {
	if done, err := q.delivered(delivery); err != nil || done {
		return done, err
	}
	return q.GivenUp(delivery)
}

// carriedOut returns nil if the verdict's entry has ended already.
func (h *heldLane) carriedOut(v Verdict) error {
	over, err := h.over(v.Delivery)
	if err != nil || over {
		return err
	}
	return fmt.Errorf("cannot apply a verdict about entry %s, which is not in flight: %w", v.Delivery, ErrStale)
}

// proven returns the outbox record of an entry whose check has passed.
func (f *flight) proven(v Verdict) *Delivery {
	a := Acknowledgement{Session: f.Session, Now: v.now()}
	if c := f.Claim; c != nil {
		a.Session, a.Reply, a.Abandoned = c.Session, c.Reply, c.Abandoned
	}
	d := newDelivery(f, a)
	d.Verdict = &Proven{By: v.By, Iteration: cmp.Or(v.Iteration, f.Iteration), TookMS: v.Took.Milliseconds()}
	return d
}

// checks reports whether the entry is done only when a check has passed.
func (i Interruption) checks(f *flight) bool {
	return f.Checked || i.Checked != nil && i.Checked(f.InFlight)
}

// leaves decides what becomes of a checked entry whose session is gone, "" for what
// becomes of any other one. f has the state that counts.
func (h *heldLane) leaves(f *flight, i Interruption) (Outcome, error) {
	if !i.checks(f) || i.Poison {
		return "", nil
	}
	f.Checked = true
	switch again := f.Iteration > 1; {
	case f.State.rank() >= Started.rank(), f.State == Taken && again:
		// Its session may have done it: that is no repeat if it has.
		f.Interrupted = f.State
		f.asks(Acknowledgement{Session: f.Session, Now: i.Now}.claim())
		return LeftChecking, h.own(f)
	case f.State == Offered && again && f.Repeats < i.limit():
		f.State = Unproven // it reached nobody
		return LeftUnproven, h.own(f)
	}
	return "", nil
}

// own makes the record durable, as ours.
func (h *heldLane) own(f *flight) error {
	f.own()
	return h.writeFlight(f)
}
