package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// WaitingFile has the entries that are set aside: an InFlight on each line.
const WaitingFile = ".waiting.jsonl"

// MostAside is how many entries of a queue may be set aside.
const MostAside = 10

// ErrNoRoomAside means that MostAside entries are set aside already.
var ErrNoRoomAside = fmt.Errorf("%d entries are set aside, and no more may be", MostAside)

// Aside is what is known about an entry that is set aside. Its line is before the cursor: the
// entry no longer has a place in the queue's order.
type Aside struct {
	Since time.Time `json:"since"`
	// Answered is when a person's answer made it due for another hand-over; zero: it waits
	// for an answer.
	Answered time.Time `json:"answered,omitzero"`
}

// Returns reports whether an entry that is set aside has to be handed over again, before
// anything that is queued.
func (f *InFlight) Returns() bool { return f.Aside != nil && f.State == Unproven }

// AsideSince returns the record of an entry in flight for when it is set aside.
func (f InFlight) AsideSince(now time.Time) InFlight {
	f.Aside, f.Failure = &Aside{Since: now.UTC()}, ""
	f.Generation, f.InboxSize = 0, 0 // they are about an inbox that it is no longer in
	return f
}

// Again returns the record of an entry that is set aside, after a verdict that makes it due for
// another hand-over.
func (f InFlight) Again(v Verdict) InFlight {
	again := flight{InFlight: f}
	again.next(v)
	again.Aside = &Aside{Since: f.Aside.Since, Answered: v.now().UTC()}
	return again.InFlight
}

// IsDelivery reports whether a text has the form of a delivery id, and can name a file.
func IsDelivery(id string) bool { return len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" }

// apart reports whether the entry in flight was set aside before. Then the inbox says nothing
// about it.
func (f *flight) apart() bool { return f.Aside != nil }

// SetAside takes the entry in flight, whose check has passed, out of the queue's order until a
// person answers. It moves to .waiting.jsonl, nothing is in flight, and the queue continues
// with the next entry. Verdict finishes the entry there, or makes it due for another hand-over.
//
// After an interruption it can be called again. The error matches ErrStale like that of
// Verdict, and ErrNoRoomAside if MostAside entries wait already.
func (h *Held) SetAside(delivery string, check int, now time.Time) (*InFlight, error) {
	return h.carrier().setAside(delivery, check, now)
}

func (h *heldLane) setAside(delivery string, check int, now time.Time) (*InFlight, error) {
	view, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer view.close()
	waiting, err := h.waiting()
	if err != nil {
		return nil, err
	}
	f := view.flight
	if f == nil || f.DeliveryID != delivery {
		if i := at(waiting, delivery); i >= 0 {
			return &waiting[i].InFlight, nil
		}
		return nil, fmt.Errorf("cannot set entry %s aside, which is not in flight: %w", delivery, ErrStale)
	}
	if f.State != Checking || f.Check != check {
		return nil, fmt.Errorf("cannot set entry %s aside: its check %d is not awaited: %w", delivery, check, ErrStale)
	}
	others := without(waiting, delivery)
	if len(others) >= MostAside {
		return nil, fmt.Errorf("cannot set entry %s aside: %w", delivery, ErrNoRoomAside)
	}
	next := *f
	next.own()
	next.InFlight = next.AsideSince(now)
	if err := h.held.writeWaiting(append(others, &next)); err != nil {
		return nil, err
	}
	return &next.InFlight, h.pass(view)
}

// Waiting returns the entries that are set aside according to the file in the agent's
// directory, which the agent can write. It needs no lock.
func (q *Queue) Waiting() ([]InFlight, error) {
	waiting, err := q.waiting()
	if len(waiting) == 0 || err != nil {
		return nil, err
	}
	now, err := q.Peek()
	if err != nil && !errors.Is(err, ErrNeedsOperator) {
		return nil, err
	}
	var all []InFlight
	for _, f := range waiting {
		if now == nil || now.DeliveryID != f.DeliveryID { // otherwise it is just being moved
			all = append(all, f.InFlight)
		}
	}
	return all, nil
}

// passedBy returns the entries that the cursor has passed although they have not ended: those
// that are set aside, and the one in flight if it was set aside before.
func (q *Queue) passedBy() (known map[string]bool, err error) {
	known = map[string]bool{}
	all, err := q.waiting()
	for _, l := range q.lanes() {
		if f, _, err := l.readFlight(); err == nil && f != nil && f.apart() {
			all = append(all, f)
		}
	}
	for _, f := range all {
		known[f.DeliveryID] = true
	}
	return known, err
}

// IsAside reports whether the entry with a delivery id is set aside.
func (q *Queue) IsAside(delivery string) (bool, error) {
	waiting, err := q.waiting()
	return at(waiting, delivery) >= 0, err
}

// waiting returns the records in the file, without lines that are not records.
func (q *Queue) waiting() ([]*flight, error) {
	all, _, err := readOwn(q.dir, WaitingFile, MostAside*(16*q.maxEntry+flightRest), parseWaiting)
	if all == nil || err != nil {
		return nil, err
	}
	return *all, nil
}

func parseWaiting(data []byte) *[]*flight {
	var all []*flight
	for line := range bytes.Lines(data) {
		f := parseFlight(line)
		if f == nil || f.foreign || !f.apart() || !IsDelivery(f.DeliveryID) || f.State != Checking && f.State != Unproven || at(all, f.DeliveryID) >= 0 {
			continue
		}
		f.Generation, f.InboxSize = 0, 0
		if all = append(all, f); len(all) == 2*MostAside { // an agent may have added some
			break
		}
	}
	return &all
}

func at(all []*flight, delivery string) int {
	return slices.IndexFunc(all, func(f *flight) bool { return f.DeliveryID == delivery })
}

func without(all []*flight, delivery string) []*flight {
	return slices.DeleteFunc(slices.Clone(all), func(f *flight) bool { return f.DeliveryID == delivery })
}

// writeWaiting durably replaces the records in the file.
func (h *Held) writeWaiting(all []*flight) error {
	if len(all) == 0 {
		if _, err := h.dir.Stat(WaitingFile); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := h.dir.Remove(WaitingFile); err != nil {
			return err
		}
		return h.dir.Sync() // one that came back would wait again
	}
	var b bytes.Buffer
	for _, f := range all {
		line, err := encodeJSON(f.InFlight)
		if err != nil {
			return err
		}
		b.Write(line)
	}
	if info, err := h.dir.Stat(WaitingFile); err == nil && !info.Mode().IsRegular() {
		if err := h.quarantine(WaitingFile); err != nil {
			return err
		}
	}
	return h.dir.Replace(WaitingFile, b.Bytes())
}

// unfile removes an entry from the file.
func (h *Held) unfile(delivery string) error {
	waiting, err := h.waiting()
	if err != nil || at(waiting, delivery) < 0 {
		return err
	}
	return h.writeWaiting(without(waiting, delivery))
}

// BringBack puts the entry in flight, as unproven, that was answered first among those that
// have to be handed over again. Its next iteration is handed over next. It returns nil if there
// is none. The error matches ErrInFlight if an entry is in flight.
func (h *Held) BringBack() (*InFlight, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	waiting, err := h.waiting()
	var first *flight
	for _, f := range waiting {
		if f.Returns() && (first == nil || f.Aside.Answered.Before(first.Aside.Answered)) {
			first = f
		}
	}
	if first == nil || err != nil {
		return nil, err
	}
	now, err := h.InFlight()
	switch {
	case err != nil:
		return nil, err
	case now != nil:
		return nil, fmt.Errorf("cannot bring entry %s back: %w", first.DeliveryID, ErrInFlight)
	}
	to := &heldLane{h.laneOf(first.Urgent), h}
	if err := to.writeFlight(first); err != nil {
		return nil, err
	}
	return &first.InFlight, h.writeWaiting(without(waiting, first.DeliveryID))
}

// answered carries out a verdict about an entry that is set aside. done is false if the entry is
// not set aside.
func (h *Held) answered(v Verdict) (d *Delivery, done bool, err error) {
	waiting, err := h.waiting()
	i := at(waiting, v.Delivery)
	if i < 0 || err != nil {
		return nil, false, err
	}
	f := waiting[i]
	switch awaited, stale := f.awaits(v); {
	case stale != nil || !awaited:
		return nil, true, stale
	case v.Passed:
		d = f.proven(v)
		if !h.recordedLately(d) {
			if err = v.records(d); err == nil {
				err = h.record(d)
			}
		}
	case v.GiveUp != "":
		f.unproven(v)
		dead := deadFlight(f, v.GiveUp, v.now())
		dead.Cause = v.Cause
		err = h.file([]DeadEntry{dead})
	default:
		f.InFlight = f.Again(v)
		return nil, true, h.writeWaiting(waiting)
	}
	if err != nil {
		return nil, true, err
	}
	return d, true, h.writeWaiting(without(waiting, v.Delivery))
}

// recordedWindow is how much of the end of the outbox is searched for the record that an
// interrupted call has written.
const recordedWindow = 16 << 20

// recordedLately is like recorded, for an entry whose record others may have followed: it
// searches the end of the outbox.
func (q *Queue) recordedLately(d *Delivery) bool {
	key := []byte(`"delivery_id":"` + d.DeliveryID + `"`)
	for _, name := range []string{outboxFile, olderOutbox} {
		var ino uint64
		file, size := q.outboxNow(name, &ino)
		if file == nil {
			continue
		}
		l := q.lines(file, max(0, size-recordedWindow), size, recordMax, recordedWindow)
		l.bare = true
		for {
			got, err := l.read()
			if err != nil {
				break
			}
			var there Delivery
			if bytes.Contains(got.raw, key) && json.Unmarshal(got.raw, &there) == nil && there.says() == d.says() {
				file.Close()
				return true
			}
		}
		file.Close()
		if size > 0 {
			break
		}
	}
	return false
}

// dropWaiting files the entries that are set aside and have these delivery ids, as dropQueued
// does for queued ones.
func (h *Held) dropWaiting(named map[string]bool) (int, error) {
	waiting, err := h.waiting()
	if err != nil {
		return 0, err
	}
	var dead []DeadEntry
	left := slices.DeleteFunc(slices.Clone(waiting), func(f *flight) bool {
		if named[f.DeliveryID] {
			dead = append(dead, deadFlight(f, Dropped, time.Now()))
		}
		return named[f.DeliveryID]
	})
	if len(dead) == 0 {
		return 0, nil
	}
	if err := h.file(dead); err != nil {
		return 0, err
	}
	return len(dead), h.writeWaiting(left)
}
