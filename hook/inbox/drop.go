package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// DropQueued removes entries that are queued or set aside, named by their envelope's id or
// their delivery id, and files them as dead letters (Dropped). It returns how many there
// were. Their lines are overwritten with blanks, so that no offset changes; an entry in
// flight is left alone. When it is interrupted after one of them was filed, the next
// Lock finishes it: an entry that is a dead letter is not handed over.
func (h *Held) DropQueued(ids ...string) (int, error) {
	found, err := h.droppable(ids)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	if err := h.begin(begun{Drop: found}); err != nil {
		return 0, err
	}
	n, err := h.drop(found)
	if err == nil {
		return n, h.over()
	}
	if filed, unknown := h.anyFiled(found); !filed && unknown == nil {
		return 0, errors.Join(err, h.over())
	}
	return n, fmt.Errorf("%w; the drop is finished when the queue is next used, and nothing of it is handed over", err)
}

// droppable returns the delivery ids of the entries that ids name.
func (h *Held) droppable(ids []string) (found []string, err error) {
	take := func(id, delivery string) {
		if slices.Contains(ids, delivery) || id != "" && slices.Contains(ids, id) {
			found = append(found, delivery)
		}
	}
	for _, l := range h.lanes() {
		v, err := l.settle()
		if err != nil {
			return nil, err
		}
		err = l.each(v, func(got line) bool {
			if e := l.entry(got, v.verdict.meta.Generation); e != nil {
				take(e.ID, e.DeliveryID)
			}
			return true
		})
		v.close()
		if err != nil {
			return nil, err
		}
	}
	waiting, err := h.waiting()
	for _, f := range waiting {
		take(f.ID, f.DeliveryID)
	}
	return found, err
}

// drop drops the entries with these delivery ids that are queued or set aside. It can be
// interrupted and called again.
func (h *Held) drop(deliveries []string) (int, error) {
	if len(deliveries) == 0 {
		return 0, nil
	}
	named := make(map[string]bool, len(deliveries))
	for _, d := range deliveries {
		named[d] = true
	}
	n := 0
	for _, l := range h.lanes() {
		dropped, err := l.dropQueued(named)
		if n += dropped; err != nil {
			return n, err
		}
	}
	dropped, err := h.dropWaiting(named)
	return n + dropped, err
}

// anyFiled reports whether one of these deliveries is a dead letter.
func (h *Held) anyFiled(deliveries []string) (bool, error) {
	dead := make([]DeadEntry, len(deliveries))
	for i, d := range deliveries {
		dead[i].DeliveryID = d
	}
	filed, err := h.filed(dead)
	for _, is := range filed {
		if is {
			return true, err
		}
	}
	return false, err
}

func (h *heldLane) dropQueued(named map[string]bool) (int, error) {
	v, err := h.settle()
	if err != nil {
		return 0, err
	}
	defer v.close()
	var dead []DeadEntry
	err = h.each(v, func(l line) bool {
		e := h.entry(l, v.verdict.meta.Generation)
		if e == nil || !named[e.DeliveryID] {
			return true
		}
		d := deadQueued(e)
		d.Reason, d.At = Dropped, time.Now().UTC()
		if r := v.verdict.meta.Requeued; r.is(e.Start, e.DeliveryID, d.EntryID) {
			d.Attempts = r.Attempt
		}
		dead = append(dead, d)
		return true
	})
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	if err := h.file(dead); err != nil {
		return 0, err
	}
	return len(dead), h.blankOut(dead)
}

// blankOut overwrites lines with blanks.
func (h *heldLane) blankOut(dead []DeadEntry) (err error) {
	file, err := h.dir.OpenFile(h.name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), rawWait)
	defer cancel()
	if err := flock.OnFile(ctx, file); err != nil {
		return err
	}
	for _, d := range dead {
		blanks := bytes.Repeat([]byte{' '}, int(d.EndOffset-d.StartOffset-1))
		step := durable.Step{Verb: durable.Write, Name: h.name, Data: blanks}
		err := h.dir.Do(step, func() error { _, err := file.WriteAt(blanks, d.StartOffset); return err })
		if err != nil {
			return fmt.Errorf("cannot drop the entry at %d: %w", d.StartOffset, err)
		}
	}
	return h.dir.SyncData(file, h.name)
}
