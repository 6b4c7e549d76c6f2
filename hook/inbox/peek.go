package inbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	form "heartbeat/queue/line"
)

// Peek returns the entry in flight, or nil, as far as it can be read. An
// acknowledged entry is not in flight. It needs no lock and changes nothing.
func (q *Queue) Peek() (*InFlight, error) { return q.carrier().peek() }

func (q *lane) peek() (*InFlight, error) {
	v, err := q.look()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.stale {
		return nil, nil
	}
	return v.record(), nil
}

// Holds reports whether an entry with an envelope id is in flight, queued or set aside. It
// reads the whole queue, needs no lock and changes nothing.
func (q *Queue) Holds(id string) (bool, error) {
	for _, l := range q.lanes() {
		if held, err := l.holds(id); held || err != nil {
			return held, err
		}
	}
	waiting, err := q.waiting()
	return slices.ContainsFunc(waiting, func(f *flight) bool { return f.ID == id }), err
}

func (q *lane) holds(id string) (bool, error) {
	v, err := q.look()
	if err != nil {
		return false, err
	}
	defer v.close()
	if v.flight != nil && v.flight.ID == id && !v.stale {
		return true, nil
	}
	found := false
	err = q.each(v, func(l line) bool {
		found = !l.tooLarge && form.Decode(l.raw, l.start == 0).ID == id
		return !found
	})
	return found, err
}

// Depth counts the entries that are queued and not in flight. It reads at most
// limit bytes after the cursor (0: no limit), but always up to the first entry.
// Lines that Next would file as dead letters count. It needs no lock and changes
// nothing.
func (q *Queue) Depth(limit int64) (Depth, error) {
	var all Depth
	for _, l := range q.lanes() {
		d, err := l.depth(limit)
		if err != nil {
			return d, err
		}
		all.add(d, l.urgent)
	}
	waiting, err := q.Waiting()
	for _, f := range waiting {
		if f.Returns() {
			all.Returning++
			continue
		}
		if all.Aside++; all.AsideSince.IsZero() || f.Aside.Since.Before(all.AsideSince) {
			all.AsideSince = f.Aside.Since
		}
	}
	return all, err
}

// add adds what is queued in a lane.
func (d *Depth) add(more Depth, urgent bool) {
	d.Entries, d.Bytes = d.Entries+more.Entries, d.Bytes+more.Bytes
	if urgent {
		d.Urgent, d.TailUrgent = d.Urgent+more.Entries, more.Tail
	}
	d.More, d.Tail = d.More || more.More, d.Tail || more.Tail
	if more.State != "" { // as carrier does
		d.State, d.Failure = more.State, more.Failure
	}
	d.Disturbed = cmp.Or(d.Disturbed, more.Disturbed)
	d.Names = append(d.Names, more.Names[:min(len(more.Names), mostNames-len(d.Names))]...)
}

func (q *lane) depth(limit int64) (Depth, error) {
	v, err := q.look()
	if err != nil {
		return Depth{}, err
	}
	defer v.close()
	from, size := v.behind(), v.source.size
	d := Depth{Disturbed: v.disturbed}
	if v.flight != nil && !v.stale {
		d.State, d.Failure = cmp.Or(v.flight.State, Offered), v.flight.Failure // heartbeat-rs records none
	}
	if size <= from {
		return d, nil
	}
	d.Bytes = size - from
	to := size
	if d.More = limit > 0 && size-from > limit; d.More {
		to = from + limit
	}
	if err := q.count(v.source, from, to, math.MaxInt, &d); err != nil || d.Entries > 0 || !d.More {
		return d, err
	}
	err = q.count(v.source, from, size, 1, &d)
	d.More = d.Entries > 0
	return d, err
}

// queued counts the entries that are queued and not in flight, at most most.
func (q *Queue) queued(most int) (int, error) {
	n := 0
	for _, l := range q.lanes() {
		more, err := l.queuedHere(most - n)
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (q *lane) queuedHere(most int) (int, error) {
	v, err := q.look()
	if err != nil {
		return 0, err
	}
	defer v.close()
	from, size := v.behind(), v.source.size
	var d Depth
	if size <= from || most <= 0 {
		return 0, nil
	}
	err = q.count(v.source, from, size, most, &d)
	return d.Entries, err
}

// count adds the entries in a stretch of the inbox to d, at most most.
func (q *lane) count(s *source, from, to int64, most int, d *Depth) error {
	l := q.lines(s.file, from, to, q.maxEntry, mostInbox)
	l.bare = true
	for d.Entries < most {
		got, err := l.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read %q: %w", q.path, err)
		case !got.complete:
			d.Tail = to == s.size && (got.tooLarge || len(bytes.TrimSpace(got.raw)) > 0)
		case got.tooLarge:
			d.Entries++
		default:
			if e := form.Decode(got.raw, got.start == 0); e.Kind != form.Blank {
				d.Entries++
				if len(d.Names) < mostNames {
					d.Names = append(d.Names, nameOf(e.ID, form.Sum(got.raw)))
				}
			}
		}
	}
	return nil
}

// mostNames is how many entries Depth names.
const mostNames = 100

func nameOf(id, entry string) string { return cmp.Or(id, entry[:min(12, len(entry))]) }

// Lacks returns those of the entries so named (see Depth), or by their delivery ids,
// that are neither queued nor in flight, set aside, done or given up. It needs no lock.
func (q *Queue) Lacks(names []string) ([]string, error) {
	left := slices.Clone(names)
	cross := func(id, entry, delivery string) {
		for _, name := range []string{nameOf(id, entry), delivery} {
			if i := slices.Index(left, name); i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
		}
	}
	for _, l := range q.lanes() {
		if err := l.eachStanding(cross); err != nil || len(left) == 0 {
			return left, err
		}
	}
	waiting, err := q.waiting()
	if err != nil {
		return left, err
	}
	for _, f := range waiting {
		cross(f.ID, f.EntryID, f.DeliveryID)
	}
	for d, err := range q.Deliveries() {
		if err != nil {
			return left, err
		}
		cross(d.ID, d.EntryID, d.DeliveryID)
	}
	for d, err := range q.DeadLetters() {
		if err != nil {
			return left, err
		}
		cross(d.ID, d.EntryID, d.DeliveryID)
	}
	return left, nil
}

// Standing calls do with the id and the prompt of the entry in flight, of what is queued
// and of what waits aside. It needs no lock and changes nothing.
func (q *Queue) Standing(do func(id, prompt string)) error {
	aside, err := q.Waiting()
	if err != nil {
		return err
	}
	for i := range aside {
		do(aside[i].ID, aside[i].Prompt())
	}
	for _, l := range q.lanes() {
		v, err := l.look()
		if err != nil {
			return err
		}
		if v.flight != nil && !v.stale {
			do(v.flight.ID, v.flight.Prompt())
		}
		err = l.each(v, func(got line) bool {
			if e := l.entry(got, v.verdict.meta.Generation); e != nil {
				do(e.ID, e.Prompt)
			}
			return true
		})
		v.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// eachStanding calls do for the entry in flight and for what is queued.
func (q *lane) eachStanding(do func(id, entry, delivery string)) error {
	v, err := q.look()
	if err != nil {
		return err
	}
	defer v.close()
	if v.flight != nil {
		do(v.flight.ID, v.flight.EntryID, v.flight.DeliveryID)
	}
	return q.each(v, func(l line) bool {
		if e := q.entry(l, v.verdict.meta.Generation); e != nil {
			do(e.ID, l.id(), e.DeliveryID)
		}
		return true
	})
}

// List returns the first limit entries that are queued and not in flight, the urgent
// ones first. It needs no lock and changes nothing.
func (q *Queue) List(limit int) ([]Entry, error) {
	var all []Entry
	for _, l := range q.lanes() {
		entries, err := l.list(limit - len(all))
		if all = append(all, entries...); err != nil || len(all) >= limit {
			return all, err
		}
	}
	return all, nil
}

func (q *lane) list(limit int) ([]Entry, error) {
	v, err := q.look()
	if err != nil {
		return nil, err
	}
	defer v.close()
	var entries []Entry
	err = q.each(v, func(l line) bool {
		if e := q.entry(l, v.verdict.meta.Generation); e != nil {
			entries = append(entries, *e)
		}
		return len(entries) < limit
	})
	return entries, err
}

// each calls do for the complete lines after the entry in flight, until do returns
// false.
func (q *lane) each(v *view, do func(line) bool) error {
	if v.source.file == nil {
		return nil
	}
	l := q.lines(v.source.file, v.behind(), v.source.size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", q.path, err)
		}
		if !do(got) {
			return nil
		}
	}
}

// Position is how far a queue is done: everything before it was acknowledged or
// given up.
type Position struct{ inbox, urgent position }

// position is how far a lane is done.
type position struct {
	file uint64 // the inode of its file
	done int64  // the cursor, in bytes
}

// maxPassed is how much of an inbox Passed counts at a time. manyPassed is how many
// entries count as passed where that cannot be told: in another inbox, in more
// bytes than it counts, or where disk space was given back.
const (
	maxPassed  = 4 << 20
	manyPassed = 64
)

// Passed counts the entries that the queue has passed since a position, and returns
// the current position. Going back counts as none. It needs no lock and changes
// nothing.
func (q *Queue) Passed(since Position) (int, Position, error) {
	now, n := since, 0
	for _, l := range q.lanes() {
		at := &now.inbox
		if l.urgent {
			at = &now.urgent
		}
		more, here, err := l.passedSince(*at)
		if err != nil {
			return 0, since, err
		}
		n, *at = n+more, here
	}
	return n, now, nil
}

func (q *lane) passedSince(since position) (int, position, error) {
	v, err := q.look()
	if err != nil {
		return 0, since, err
	}
	defer v.close()
	now := position{v.source.ino, v.verdict.cursor}
	switch {
	case now.file == since.file && now.done <= since.done:
		return 0, since, nil
	case now.file != since.file && (since.file != 0 || !q.urgent), v.verdict.meta.Punched > since.done, now.done-since.done > maxPassed:
		return manyPassed, now, nil
	}
	n := 0
	for l := q.lines(v.source.file, since.done, min(now.done, v.source.size), q.maxEntry, maxPassed); ; {
		got, err := l.read()
		switch {
		case errors.Is(err, io.EOF):
			return n, now, nil
		case err != nil:
			return n, since, fmt.Errorf("cannot read %q: %v", q.path, err)
		case got.tooLarge || form.Decode(got.raw, got.start == 0).Kind != form.Blank:
			n++
		}
	}
}
