package inbox

// Peek returns the entry in flight, or nil, as far as it can be read. It
// needs no lock and changes nothing.
func (q *Queue) Peek() (*InFlight, error) {
	v, err := q.look()
	if err != nil {
		return nil, err
	}
	defer v.close()
	return v.record(), nil
}

// Holds reports whether an entry with an envelope id is in flight or queued. It
// reads all that is queued, needs no lock and changes nothing.
func (q *Queue) Holds(id string) (bool, error) {
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
		found = !l.tooLarge && decode(l.raw, l.start == 0).id == id
		return !found
	})
	return found, err
}
