// Package series records what each agent does in each ten minutes, and keeps it for 400
// days and more: queue depth, prompts, sessions, fires and how late they were, turns,
// tokens, cost. It is for looking back when the journal and the usage records are gone.
// Nothing is decided by it.
//
// A Point takes 76 bytes with its checksum. Only slots in which something happened have
// one; Watch says in which of the others a run was there to record. A slot is written
// once, when it is over, from the journal and the usage records. So a run that is killed
// leaves no slot out and counts nothing twice. No other file has the depth of the queues:
// a run that ends leaves the last depths to the next run, and a run that is killed loses
// them. Such a slot is shown as unmeasured, not as an empty queue. What is not written yet the
// run alone knows (Recorder.Look). Files are not synced.
// Damaged parts of a file are skipped.
package series

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"heartbeat/orchestrator/usage"
)

// Slot is how much time a point covers.
const Slot = 10 * time.Minute

// Point is what happened in one slot, or, added up, in several.
type Point struct {
	// At is when the slot, or the first of them, began.
	At time.Time `json:"at"`
	// Queued is the most entries that were queued at once, counted each minute.
	Queued int64 `json:"queued"`
	// Done counts prompts that were done, Failed those that were given up.
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	// Sessions counts the sessions that ended.
	Sessions int64 `json:"sessions"`
	// Fires counts the fires of triggers, Late is the longest delay of a scheduled one.
	Fires int64         `json:"fires"`
	Late  time.Duration `json:"-"`
	usage.Sum
}

// Then adds what the same agent did at another time.
func (p Point) Then(q Point) Point {
	queued := max(p.Queued, q.Queued)
	p = p.Beside(q)
	p.Queued = queued
	return p
}

// Beside adds what another agent did at the same time.
func (p Point) Beside(q Point) Point {
	return Point{
		p.At, p.Queued + q.Queued, p.Done + q.Done, p.Failed + q.Failed, p.Sessions + q.Sessions, p.Fires + q.Fires,
		max(p.Late, q.Late), p.Plus(q.Sum),
	}
}

// empty reports whether nothing happened in it.
func (p Point) empty() bool {
	p.At = time.Time{}
	return p == Point{}
}

// slotOf returns the number of a time's slot, counted from 1970.
func slotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

func startOf(slot int64) time.Time { return time.Unix(slot*int64(Slot/time.Second), 0) }

// A point on disk: its slot and 14 counts of 4 bytes each, the cost in 8 (a double), the
// lateness in milliseconds in 4, and a CRC-32C of all that.
const (
	counts    = 14
	pointSize = 4 + 4*counts + 8 + 4 + 4
)

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// fields returns the counts in their order on disk.
func (p *Point) fields() [counts]*int64 {
	return [counts]*int64{
		&p.Queued, &p.Done, &p.Failed, &p.Sessions, &p.Fires, &p.Turns, &p.Calls, &p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.Unseen, &p.Unpriced,
		&p.Guessed,
	}
}

func (p Point) encode(to []byte) []byte {
	begin, le := len(to), binary.LittleEndian
	to = le.AppendUint32(to, uint32(slotOf(p.At)))
	for _, f := range p.fields() {
		to = le.AppendUint32(to, uint32(min(max(0, *f), math.MaxUint32)))
	}
	to = le.AppendUint64(to, math.Float64bits(p.Cost))
	to = le.AppendUint32(to, uint32(min(max(0, p.Late.Milliseconds()), math.MaxUint32)))
	return le.AppendUint32(to, sumOf(to[begin:]))
}

// decode reads the point at the beginning of data. ok is false if there is no whole one.
func decode(data []byte) (p Point, slot int64, ok bool) {
	if len(data) < pointSize {
		return p, 0, false
	}
	le, body := binary.LittleEndian, data[:pointSize-4]
	if le.Uint32(data[pointSize-4:]) != sumOf(body) {
		return p, 0, false
	}
	slot = int64(le.Uint32(body))
	for i, f := range p.fields() {
		*f = int64(le.Uint32(body[4+4*i:]))
	}
	const cost = 4 + 4*counts
	p.Cost = math.Float64frombits(le.Uint64(body[cost:]))
	p.Late = time.Duration(le.Uint32(body[cost+8:])) * time.Millisecond
	return p, slot, true
}
