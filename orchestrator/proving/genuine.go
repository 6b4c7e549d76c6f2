package proving

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// origin is what the state directory knows of the entry that a record says is in flight:
// the agent can write the record.
type origin struct {
	is likeness
	// apart is what was set aside of it; nil: it never was.
	apart *inbox.InFlight
	// sent is what was queued with its id, of a record with otherText; else nil.
	sent *ledger.Text
}

// likeness is how a record compares with what the state directory knows.
type likeness int

// Whatever is not genuine is forged: nothing that its record says counts.
const (
	uncompared likeness = iota
	genuine             // it is of what was handed over
	otherLine           // its line is not the one that was handed over, or stands nowhere
	otherText           // its line says something else than what was queued with its id
)

// why says what somebody has done, of a record that is not genuine.
func (l likeness) why() string {
	if l == otherText {
		return "its line in the inbox is not what was queued"
	}
	return "somebody has written another prompt into the record of the entry in flight"
}

// originOf compares a record with what the state directory knows of its delivery. Of one
// that it does not know the line has to stand in the inbox, and the delivery id has to be
// the line's. In either case the line has to say what was queued, where that is known.
func (d *Desk) originOf(a *config.Agent, key string, f *inbox.InFlight, c ledger.Course) (o origin, err error) {
	if f.Aside != nil {
		all, err := ledger.Asides(d.opt.StateDir, key)
		if err != nil {
			return o, err
		}
		for i := range all {
			if all[i].Flight.DeliveryID == f.DeliveryID {
				o.apart = &all[i].Flight
			}
		}
	}
	same := f.Own
	switch {
	case o.apart != nil:
		same = f.EntryID == o.apart.EntryID
	case c.Entry != "":
		same = f.EntryID == c.Entry
	}
	if !same {
		o.is = otherLine
		return o, nil
	}
	if o.apart == nil { // else its text was compared when it was set aside
		if o.sent, err = d.compareText(a, f); err != nil {
			return o, err
		}
	}
	if o.is = genuine; o.sent != nil {
		o.is = otherText
	}
	return o, nil
}

// Genuine reports whether the record of an entry in flight is of what was handed over.
// Where that cannot be told, it is not.
func (d *Desk) Genuine(a *config.Agent, key string, f *inbox.InFlight) bool {
	book, err := d.Book(key)
	if err != nil {
		return false
	}
	o, err := d.originOf(a, key, f, book.Course(f.DeliveryID))
	return o.is == genuine && err == nil
}

// HandedOver remembers the line of the entry that a session was handed over, if it has
// something to pass and says what was queued: what its record says later is compared with
// it. Another line of the same delivery changes nothing. It returns the entry, or nil.
func (d *Desk) HandedOver(a *config.Agent, key string) (*inbox.InFlight, error) {
	f, err := queue.InFlight(a)
	if err != nil || f == nil || !f.Own || !d.Demands(a, f) {
		return f, err
	}
	book, err := d.Book(key)
	if err != nil {
		return f, err
	}
	known, err := d.originOf(a, key, f, book.Course(f.DeliveryID))
	if err != nil || known.is != genuine {
		return f, err
	}
	return f, d.remember(book, f)
}

// remember keeps the line of an entry that was handed over.
func (d *Desk) remember(book *ledger.Book, f *inbox.InFlight) error {
	c := book.Course(f.DeliveryID)
	if c.Entry != "" {
		return nil
	}
	c.Entry = f.EntryID
	return book.Keep(c)
}

// forgery is the verdict about a record that is not of what was handed over: that is given
// up, and nothing that the record says counts.
func (s subject) forgery(c ledger.Course) *ledger.Verdict {
	v := s.verdict(c)
	v.By, v.Why, v.GiveUp = "none", s.is.why(), inbox.Forged
	return &v
}

// lie is what somebody has changed in the record of an entry that goes on.
type lie struct {
	delivery       string
	renamed, aside bool
}

// tellChanged tells, once in a run, what was changed in a record and does not count.
func (r *run) tellChanged(a *config.Agent, f *inbox.InFlight, known origin) {
	now := lie{f.DeliveryID, f.Renamed, f.Aside != nil && known.apart == nil}
	if now == r.lied {
		return
	}
	r.lied = now
	const what = "somebody has changed the record of the entry in flight"
	if now.renamed {
		r.tellLie(a, f.DeliveryID, what, "its record has named another entry; it has to pass what it had to")
	}
	if now.aside {
		r.tellLie(a, f.DeliveryID, what, "its record says that it was set aside, and it never was; it goes on where it stands")
	}
}
