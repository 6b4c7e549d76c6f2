package inbox

import (
	"errors"
	"os"

	form "heartbeat/queue/line"
)

// Vanished is an entry that was queued and does not stand in the inbox any more.
type Vanished struct {
	ID string `json:"id,omitempty"`
	// Prompt is "" where the text went with the inbox.
	Prompt string `json:"prompt,omitempty"`
}

// foreseen calls do with each entry that becomes a dead letter, Lost, whatever a person
// answers to what the queue asks: it was queued, stands nowhere in the inbox, and nothing
// says that it was done. Where the sidecar is gone, nothing tells what was done, and where
// only a size is known, nothing tells what it was: of that it says nothing. why is what
// happened to the inbox, as Gone.Why; "": nothing, and do is not called.
func (q *lane) foreseen(do func(DeadEntry)) (why string, err error) {
	m, _, err := q.readMeta()
	if err != nil || m == nil || m.unknown() {
		return "", err
	}
	c, err := q.readCursor()
	if err != nil {
		return "", err
	}
	s, err := q.openSource(os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer s.close()
	f, err := q.flightHere(s)
	if err != nil {
		return "", err
	}
	v := &view{source: s, flight: f, before: m, cursorFile: c}
	// Nothing that stands behind the cursor is missing. Where the cursor is to be is what the
	// queue asks, so it is taken for the first byte that still has its text: the space before
	// that (Punched) was given back.
	if m.Ino == s.ino {
		v.verdict.cursor = min(m.Punched, s.size)
	}
	if v.disturbed = q.disturbed(v); v.disturbed == "" {
		return "", nil
	}
	_, err = q.missing(v, func(d DeadEntry) error {
		if (d.ID != "" || d.Raw() != nil) && !q.blanked(s, m, d) {
			do(d)
		}
		return nil
	})
	if errors.Is(err, ErrTooMuch) {
		err = nil // what was read is certain
	}
	return v.disturbed, err
}

// blanked reports whether blanks stand in an entry's place: it was dropped.
func (q *lane) blanked(s *source, m *meta, d DeadEntry) bool {
	return d.Raw() == nil && s.file != nil && s.ino == m.Ino && s.holds(splitLine{raw: []byte(d.ID), start: d.StartOffset}, false)
}

// goneAsking is gone for a queue that asks a person.
func (q *lane) goneAsking() (g Gone, err error) {
	g.Why, err = q.foreseen(g.add)
	if g.Entries == 0 {
		return Gone{}, err
	}
	return g, err
}

// foresee adds to a question what each answer loses that is not in the inbox. A question
// for which that cannot be told can be answered all the same, and says so.
func (q *lane) foresee(asked *Question) {
	n := 0
	_, err := q.foreseen(func(d DeadEntry) {
		if n++; len(asked.Missing) < mostGone {
			asked.Missing = append(asked.Missing, Vanished{ID: d.ID, Prompt: form.Decode(d.Raw(), false).Prompt})
		}
	})
	if err != nil {
		asked.Missing, asked.MissingUnknown = nil, err.Error()
	}
	for i := range asked.Answers {
		if asked.Answers[i].MissingUnknown = err != nil; err != nil {
			continue
		}
		asked.Answers[i].Missing = n
		for _, gone := range asked.Missing {
			if gone.ID != "" {
				asked.Answers[i].MissingIDs = append(asked.Answers[i].MissingIDs, gone.ID)
			}
		}
	}
}
