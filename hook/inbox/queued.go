package inbox

import form "heartbeat/queue/line"

// Queued reports whether an entry is queued: by its delivery id, by its envelope's id if it
// is not "", or as the one that was queued again in its place. It reads the whole queue,
// needs no lock and changes nothing.
func (q *Queue) Queued(delivery, id string) (bool, error) {
	for _, l := range q.lanes() {
		if is, err := l.queued(delivery, id); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func (q *lane) queued(delivery, id string) (is bool, err error) {
	v, err := q.look()
	if err != nil {
		return false, err
	}
	defer v.close()
	err = q.each(v, func(l line) bool {
		if d := form.Decode(l.raw, l.start == 0); !l.tooLarge && d.Kind == form.Text {
			is = id != "" && d.ID == id || delivery != "" && (d.RetryOf == delivery || q.deliveryID(v.verdict.meta.Generation, l.start, l.raw) == delivery)
		}
		return !is
	})
	return is, err
}
