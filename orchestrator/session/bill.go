package session

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// How often the session's cost is recorded: soon after its turn or its entry has
// changed, seldom during a turn. What a killed shim has not recorded is counted from
// the client's transcripts.
const (
	recordSoon   = 250 * time.Millisecond
	recordInTurn = time.Minute
)

// bill counts what the session costs, from what the client tells and writes.
type bill struct {
	counter usage.Counter
	reader  usage.Reader
	kept    usage.Kept
	toldAt  time.Time // of the last figure of the status line that was counted
	done    int       // entries, when the transcripts were last looked at

	recordedAt time.Time
	recorded   string // the delivery id at that time
	// before is what earlier sessions spent on the delivery beforeOn.
	before   usage.Sum
	beforeOn string
	// number is that of the last record, owed are those that the scheduler has not said
	// to be written. begun are those from which another process can go on counting.
	number      int64
	owed, begun []usage.Record
	written     chan Billed // the scheduler's last answer that was not taken yet
	closed      bool        // nothing is counted any more
}

// Billed is the scheduler's answer to records of what a session has cost.
type Billed struct {
	Number int64  `json:"number"`        // of the last of them
	Why    string `json:"why,omitempty"` // they could not be written; "": all up to it are
}

// openBill starts counting, before the client is started.
func (s *shim) openBill() {
	b := &s.bill
	if s.spec.Resume == "" {
		b.counter.Base(0)
		b.counter.Took(client.Tokens{})
		return
	}
	b.began(s.record.StartedAt)
	path, size := s.conversation(s.spec.Resume)
	b.kept.Transcript, b.kept.From = path, size
	b.reader.From(path, size)
	if total, whole, ok := usage.Base(path, size); ok {
		b.counter.Base(total)
		b.counter.Took(whole)
	}
}

// began sets from when on the lines of a resumed conversation belong to the session.
func (b *bill) began(at time.Time) {
	b.kept.Began = at.Round(0) // by the wall clock, like the lines
	b.reader.Began = b.kept.Began
}

// spend counts what was spent since the last look, and records it from time to time. An
// entry that began and ended between two looks is billed to the one before it.
func (s *shim) spend(now time.Time) {
	b := &s.bill
	if b.kept.Began.After(now) { // the clock was set back; all that is older was read
		b.began(now.Add(-time.Minute))
	}
	b.counter.Works(ofWork(s.record.Work), s.workSince(now))
	first := s.follows(s.record.Transcript)
	if err := b.reader.Look(b.kept.Transcript, now, &b.counter); err != nil {
		s.failed.about("cannot read what the session costs", err, now)
	}
	if done := s.record.Acknowledged; done > b.done {
		if b.done = done; b.reader.Gone(b.kept.Transcript) { // an agent may remove it after each turn
			b.counter.Miss()
		}
	}
	if line, at := s.live.Told(); line != nil && !at.Equal(b.toldAt) {
		b.toldAt = at
		b.counter.Told(line.Cost, at)
	}
	if first || b.isDue(s.record, now) {
		s.recordBill(now, first)
	}
}

// follows makes the reader follow the transcript that the client writes now, and
// reports whether it is another one.
func (s *shim) follows(transcript string) bool {
	k := &s.bill.kept
	if transcript == "" || transcript == k.Transcript && !s.bill.recordedAt.IsZero() {
		return false
	}
	if transcript != k.Transcript {
		if k.Transcript != "" {
			s.bill.counter.Anew()
		}
		k.Transcript, k.From = transcript, 0
	}
	return true
}

// isDue reports whether it is time for another record.
func (b *bill) isDue(r *hook.Record, now time.Time) bool {
	since := now.Sub(b.recordedAt)
	switch {
	case b.kept.Transcript == "":
		return false
	case b.owes() || since < recordSoon:
		return since >= recordInTurn
	}
	return r.Phase != hook.Turn || ofWork(r.Work).Delivery != b.recorded || since >= recordInTurn
}

// workSince returns since when the session has worked on its entry.
func (s *shim) workSince(now time.Time) time.Time {
	if w := s.record.Work; w != nil {
		return w.Since
	}
	return now
}

func ofWork(w *hook.Work) usage.Of {
	if w == nil {
		return usage.Of{}
	}
	return usage.Of{Delivery: w.DeliveryID, Entry: w.ID, Source: w.Source, Attempt: w.Attempt}
}

// recordBill has the scheduler record what was spent since the last record. With first the
// session writes another file: that is recorded even if nothing was spent, and noted, so that
// another process can go on counting there.
func (s *shim) recordBill(now time.Time, first bool) {
	b := &s.bill
	parts := b.counter.Drain()
	record := usage.Record{At: now, Agent: s.spec.Agent, Session: s.spec.Session, Account: s.spec.Account, Group: s.spec.Group}
	record.Kept.Began, record.Kept.Total, record.Kept.Unknown = b.kept.Began, b.counter.Total(), !b.counter.Known()
	if first {
		begun := b.next(record)
		begun.Of, begun.Kept.Transcript, begun.Kept.From = ofWork(s.record.Work), b.kept.Transcript, b.kept.From
		b.owed, b.begun = append(b.owed, begun), append(b.begun, begun)
		if err := s.keepLeftover(); err != nil {
			s.failed.about("cannot note what the session costs", err, now)
		}
	}
	for _, p := range parts {
		r := b.next(record)
		r.Of, r.Sum = p.Of, p.Sum
		b.owed = append(b.owed, r)
	}
	b.recordedAt, b.recorded = now, ofWork(s.record.Work).Delivery
	if !b.owes() {
		return
	}
	if err := s.out.Encode(Report{At: now, Bill: b.owed}); err != nil {
		s.log.Debug("cannot report what the session costs", "err", err)
	}
}

// next numbers a record.
func (b *bill) next(r usage.Record) usage.Record {
	b.number++
	r.Number = b.number
	return r
}

// answered takes the scheduler's answer, from any goroutine.
func (b *bill) answered(a Billed) {
	select {
	case <-b.written: // an older one
	default:
	}
	b.written <- a
}

// take takes an answer.
func (s *shim) take(a Billed, now time.Time) {
	if a.Why != "" {
		s.failed.about("cannot record what the session costs", errors.New(a.Why), now)
		return
	}
	b := &s.bill
	b.owed = slices.DeleteFunc(b.owed, func(r usage.Record) bool { return r.Number <= a.Number })
}

// owes reports whether records are not known to be written.
func (b *bill) owes() bool { return len(b.owed) > 0 }

// toKeep are the records that whoever counts after a kill needs.
func (b *bill) toKeep() []usage.Record {
	if b.closed {
		return b.owed
	}
	return b.begun
}

// answerWait is how long an ended session waits for the scheduler to record what it has cost.
const answerWait = 10 * time.Second

// awaitBilled waits until all is recorded, or cannot be now.
func (s *shim) awaitBilled() {
	late := time.After(answerWait)
	for s.bill.owes() {
		select {
		case a := <-s.bill.written:
			if s.take(a, time.Now()); a.Why != "" {
				return
			}
		case _, alive := <-s.orders:
			if !alive {
				return // the scheduler is gone
			}
		case <-late:
			return
		}
	}
}

// closeBill counts the rest when the client has ended; inTurn is since when a turn ran
// then, zero: none ran.
func (s *shim) closeBill(now, inTurn time.Time) {
	b := &s.bill
	if b.kept.Transcript == "" { // our hooks were never called
		path, _ := s.conversation(cmp.Or(s.spec.Resume, s.spec.Session))
		s.follows(path)
	}
	b.reader.LookAgain()
	s.spend(now)
	if err := b.reader.LookAtAll(b.kept.Transcript, now, &b.counter); err != nil {
		s.failed.about("cannot read what the session costs", err, now)
	}
	b.counter.Close(!inTurn.IsZero(), unwritten(s.record, inTurn, b.counter.Tail(), now)...)
	s.recordBill(now, false)
	b.closed = true
	s.awaitBilled()
}

// overBudget says which limit of its budget the entry in flight has exceeded, including
// what earlier sessions spent on it; "": none.
func (s *shim) overBudget(now time.Time) string {
	b, w := &s.bill, s.record.Work
	if w == nil || s.spec.EntryBudget == (usage.Allowance{}) {
		return ""
	}
	if w.DeliveryID != b.beforeOn {
		err := usage.Read(s.spec.StateDir, func(v *store.View) (err error) {
			b.before, err = usage.On(v, w.DeliveryID, s.spec.Session)
			return err
		})
		if err == nil {
			b.beforeOn = w.DeliveryID
		} else {
			s.failed.about("cannot read what the entry has cost before", err, now)
		}
	}
	return s.spec.EntryBudget.Exceeded(b.before.Plus(b.counter.On(w.DeliveryID)))
}
