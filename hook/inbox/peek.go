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
