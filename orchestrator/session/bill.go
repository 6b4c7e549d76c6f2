package session

import (
	"cmp"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
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
	// unsure are records that may be on disk, although writing them failed.
	unsure []usage.Record
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
	case len(b.unsure) > 0 || since < recordSoon:
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

// recordBill records what was spent since the last record. With first it writes a
// record even if nothing was spent, from which another process can go on counting.
func (s *shim) recordBill(now time.Time, first bool) {
	b := &s.bill
	parts := b.counter.Drain()
	b.kept.Total, b.kept.Unknown = b.counter.Total(), !b.counter.Known()
	if len(parts) == 0 && first {
		parts = []usage.Part{{Of: ofWork(s.record.Work)}}
	}
	records, err := b.missing(s.spec.StateDir, s.spec.Agent)
	for i, p := range parts {
		records = append(records, usage.Record{
			// Two records of one time stay two.
			At: now.Add(time.Duration(i)), Agent: s.spec.Agent, Session: s.spec.Session, Account: s.spec.Account, Group: s.spec.Group, Of: p.Of, Sum: p.Sum, Kept: b.kept,
		})
	}
	b.recordedAt, b.recorded, b.unsure = now, ofWork(s.record.Work).Delivery, records
	if err == nil {
		err = usage.Append(s.spec.StateDir, s.spec.Agent, records...)
	}
	if err == nil {
		b.unsure = nil
	} else {
		s.failed.about("cannot record what the session costs", err, now)
	}
}

// missing returns the records that could not be written, except those that are on disk
// after all. After an error it is not known which those are.
func (b *bill) missing(stateDir, agent string) ([]usage.Record, error) {
	if len(b.unsure) == 0 {
		return nil, nil
	}
	left := slices.Clone(b.unsure)
	err := usage.Read(stateDir, agent, b.unsure[0].At, func(r usage.Record) {
		left = slices.DeleteFunc(left, func(u usage.Record) bool { return u.At.Equal(r.At) && u.Session == r.Session })
	})
	if err != nil {
		return b.unsure, err
	}
	return left, nil
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
	s.recordBill(now.Add(time.Microsecond), false)
}

// overBudget says which limit of its budget the entry in flight has exceeded, including
// what earlier sessions spent on it; "": none.
func (s *shim) overBudget(now time.Time) string {
	b, w := &s.bill, s.record.Work
	if w == nil || s.spec.EntryBudget == (usage.Allowance{}) {
		return ""
	}
	if w.DeliveryID != b.beforeOn {
		var before usage.Sum
		err := usage.Read(s.spec.StateDir, s.spec.Agent, time.Time{}, func(r usage.Record) {
			if r.Delivery == w.DeliveryID && r.Session != s.spec.Session {
				before = before.Plus(r.Sum)
			}
		})
		b.before = before
		if err == nil {
			b.beforeOn = w.DeliveryID
		} else {
			s.failed.about("cannot read what the entry has cost before", err, now)
		}
	}
	return s.spec.EntryBudget.Exceeded(b.before.Plus(b.counter.On(w.DeliveryID)))
}
