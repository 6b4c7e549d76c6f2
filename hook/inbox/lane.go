package inbox

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// UrgentFile is the file of the urgent entries, beside the inbox.
const UrgentFile = "urgent.jsonl"

// Beside it, as CursorFile, FlightFile and the sidecar beside the inbox.
const (
	UrgentCursor = ".urgent-offset"
	UrgentFlight = ".urgent-in-flight"
	urgentMeta   = ".urgent-meta"
)

// Urgent is the path of the urgent entries of an inbox.
func Urgent(inbox string) string { return Beside(inbox, UrgentFile) }

// lane is one file of lines, and the files beside it that say how far it is done.
// What is done to one of them is a method of lane, or of heldLane where it changes
// something; a Queue consists of its lanes and of what they share: the locks, the
// outbox, the dead letters and the memory of ids.
type lane struct {
	*Queue
	urgent bool
	path   string // of the lines, as it is shown
	name   string // of the lines in the queue's folder
	// The files beside it: the cursor, the sidecar, the entry in flight, heartbeat-rs's
	// flag that this was handed over (""; it knows one lane), and the second name of the
	// lines' file: when another file takes its place, what was queued in it can still be
	// read there.
	cursor, meta, flight, responded, kept string
}

// inbox is the lane that everybody appends to.
func (q *Queue) inbox() *lane {
	return &lane{
		Queue: q, path: q.place.Inbox, name: q.name, cursor: CursorFile, meta: metaFile,
		flight: FlightFile, responded: respondedFile, kept: "." + q.name + ".kept",
	}
}

// hurried is the lane whose entries are handed over before the others.
func (q *Queue) hurried() *lane {
	return &lane{
		Queue: q, urgent: true, path: filepath.Join(filepath.Dir(q.place.Inbox), UrgentFile), name: UrgentFile,
		cursor: UrgentCursor, meta: urgentMeta, flight: UrgentFlight, kept: "." + UrgentFile + ".kept",
	}
}

// laneOf is the lane of urgent entries, or of the others.
func (q *Queue) laneOf(urgent bool) *lane {
	if urgent {
		return q.hurried()
	}
	return q.inbox()
}

// lanes are those that were ever used, in the order in which their entries are handed
// over. The inbox is always among them.
func (q *Queue) lanes() []*lane {
	if u := q.hurried(); !q.single() && u.there() {
		return []*lane{u, q.inbox()}
	}
	return []*lane{q.inbox()}
}

// single reports whether the queue has no urgent lane, because the place says so or
// because the inbox has its name.
func (q *Queue) single() bool { return q.place.Single || q.name == UrgentFile }

// there reports whether a lane was ever used. Until then this is all that it costs.
func (q *lane) there() bool {
	return q.has(q.name) || q.has(q.meta) || q.has(q.flight) || q.has(q.kept)
}

func (q *lane) has(name string) bool {
	_, err := q.dir.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// carrier is the lane that has the entry in flight; the inbox's if none has. Only one
// has it, unless somebody else has made a record, or a power cut has brought one back
// that was done.
func (q *Queue) carrier() *lane {
	found := q.inbox()
	for _, l := range q.lanes() {
		if l.has(l.flight) && (l.urgent || !found.urgent || l.carries()) {
			found = l
		}
	}
	return found
}

// carries reports whether a lane's record is of an entry that is not done, as far as it
// can be read.
func (q *lane) carries() bool {
	v, err := q.look()
	if err != nil {
		return true
	}
	defer v.close()
	return v.flight != nil && !v.stale || v.flightCorrupt
}

// asking is the first lane that asks a person something; nil if none does.
func (q *Queue) asking() (*lane, error) {
	for _, l := range q.lanes() {
		v, err := l.look()
		if err == nil {
			v.close()
			continue
		}
		return l, err
	}
	return nil, nil
}

// heldLane is a lane whose hook lock is held.
type heldLane struct {
	*lane
	held *Held
}

// carrier is Queue.carrier.
func (h *Held) carrier() *heldLane { return &heldLane{h.Queue.carrier(), h} }

// lanes is Queue.lanes.
func (h *Held) lanes() []*heldLane {
	var held []*heldLane
	for _, l := range h.Queue.lanes() {
		held = append(held, &heldLane{l, h})
	}
	return held
}

// others are the lanes besides this one that have a record of an entry in flight.
func (h *heldLane) others() []*heldLane {
	var others []*heldLane
	for _, l := range h.held.lanes() {
		if l.urgent != h.urgent && l.has(l.flight) {
			others = append(others, l)
		}
	}
	return others
}

// check is called first by whatever may change something; see Held.
func (h *heldLane) check() error { return h.held.check() }

// file is Held.file for dead letters of this lane.
func (h *heldLane) file(dead []DeadEntry) error {
	for i := range dead {
		dead[i].Urgent = h.urgent
	}
	return h.held.file(dead)
}
