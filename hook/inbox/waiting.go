package inbox

import (
	"bytes"
	"slices"
)

// Reconciled is what KeepWaiting found.
type Reconciled struct {
	// Ended are the wanted entries that became dead letters meanwhile.
	Ended []string
	// Queued are the wanted entries that are still queued: setting them aside was interrupted,
	// and their session has ended. They are handed over from the queue.
	Queued []string
	// Removed are the wanted entries that somebody had removed from the file, or changed
	// there. They are in the file again.
	Removed []string
	// Unknown are the entries that only the file knows. They stay in the file.
	Unknown []InFlight
}

// KeepWaiting corrects the file of entries that are set aside by what the caller wants there. The
// caller knows that from elsewhere, because an agent can write the file. Entries that are in
// flight or queued are left out, because they would be done twice. done says which entries that
// only the file knows have certainly ended.
func (h *Held) KeepWaiting(want []InFlight, done func(delivery string) bool) (r Reconciled, err error) {
	if err := h.check(); err != nil {
		return r, err
	}
	have, err := h.waiting()
	if err != nil || len(want) == 0 && len(have) == 0 {
		return r, err
	}
	now, err := h.InFlight()
	if err != nil {
		return r, err
	}
	wanted := asFlights(want)
	all := append(slices.Clone(have), wanted...)
	ends := make([]DeadEntry, 0, len(all))
	for _, f := range all {
		ends = append(ends, DeadEntry{DeliveryID: f.DeliveryID})
	}
	filed, err := h.filed(ends)
	if err != nil {
		return r, err
	}
	queued, err := h.queuedOf(all)
	if err != nil {
		return r, err
	}
	next, r := reconcile(have, wanted, elsewhere{now, filed, queued, done})
	if slices.EqualFunc(have, next, sameRecord) {
		return r, nil
	}
	return r, h.writeWaiting(next)
}

// elsewhere says whether entries are somewhere else than set aside: in flight, among the dead
// letters, queued, or done.
type elsewhere struct {
	now           *InFlight
	filed, queued map[string]bool
	done          func(delivery string) bool
}

func (e elsewhere) flies(f *flight) bool { return e.now != nil && e.now.DeliveryID == f.DeliveryID }

// reconcile returns what the file has to contain: the wanted entries that are nowhere else, and
// the entries that only the file knows and that have not ended.
func reconcile(have, wanted []*flight, is elsewhere) (next []*flight, r Reconciled) {
	for _, f := range wanted {
		switch i := at(have, f.DeliveryID); {
		case is.flies(f):
			continue
		case is.filed[f.DeliveryID]:
			r.Ended = append(r.Ended, f.DeliveryID)
			continue
		case is.queued[f.DeliveryID]:
			r.Queued = append(r.Queued, f.DeliveryID)
			continue
		case i >= 0 && have[i].State == Checking && f.Returns(): // what made it return was interrupted
		case i < 0 || !sameRecord(have[i], f):
			r.Removed = append(r.Removed, f.DeliveryID)
		}
		next = append(next, f)
	}
	for _, f := range have {
		if at(wanted, f.DeliveryID) >= 0 || is.flies(f) || is.filed[f.DeliveryID] || is.queued[f.DeliveryID] || is.done(f.DeliveryID) {
			continue
		}
		r.Unknown = append(r.Unknown, f.InFlight)
		next = append(next, f)
	}
	return next, r
}

func sameRecord(x, y *flight) bool {
	a, errA := encodeJSON(x.InFlight)
	b, errB := encodeJSON(y.InFlight)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// asFlights returns records with the bytes of their lines.
func asFlights(all []InFlight) []*flight {
	flights := make([]*flight, 0, len(all))
	for _, f := range all {
		if data, err := encodeJSON(f); err == nil {
			if known := parseFlight(data); known != nil {
				flights = append(flights, known)
			}
		}
	}
	return flights
}

// queuedOf returns which entries are queued, by delivery id.
func (q *Queue) queuedOf(all []*flight) (queued map[string]bool, err error) {
	queued = map[string]bool{}
	for _, l := range q.lanes() {
		v, err := l.look()
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			if f.Urgent == l.urgent && !queued[f.DeliveryID] && err == nil {
				queued[f.DeliveryID], err = l.queuedAgain(v, f)
			}
		}
		v.close()
		if err != nil {
			return nil, err
		}
	}
	return queued, nil
}

// queuedAgain reports whether the line of an entry is behind the cursor again.
func (q *lane) queuedAgain(v *view, f *flight) (bool, error) {
	from := v.verdict.cursor
	if r := v.verdict.meta.Requeued; r != nil && (r.DeliveryID == f.DeliveryID || f.ID != "" && r.EntryID == f.EntryID) {
		return q.stands(v.source, max(from, r.From), f.raw)
	}
	if f.StartOffset < from || q.deliveryID(v.verdict.meta.Generation, f.StartOffset, f.raw) != f.DeliveryID {
		return false, nil
	}
	line := *f
	q.locateFlight(v.source, &line)
	return line.here, nil
}
