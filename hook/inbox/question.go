package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Question is what a queue asks a person when it does not know where to continue
// (ErrNeedsOperator), because deciding by itself could lose or repeat entries.
type Question struct {
	// Why says what happened.
	Why string `json:"why"`
	// InFlight is the entry that a session had; nil when none is known.
	InFlight *InFlight `json:"in_flight,omitempty"`
	// Answers are the places where the queue may continue, in the order of the
	// file.
	Answers []Answer `json:"answers"`
}

// Answer is a place in the inbox where the queue may continue.
type Answer struct {
	// Name is start, cursor (where the cursor was), in-flight (the entry that a
	// session had), last (after the last line that was done; when that line occurs
	// several times: last, last-2 and so on), or end.
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	// Done counts the entries before it, which then count as done. Given counts
	// those after it, which are handed over even if they were before.
	Done  int `json:"done"`
	Given int `json:"given"`
	// Next is the prompt of the first entry after it, or "".
	Next string `json:"next,omitempty"`
}

// mostLast bounds how many occurrences of the last line that was done are offered.
const mostLast = 8

// Question returns what the queue asks a person, or nil when it asks nothing. It
// reads the whole inbox, needs no lock and changes nothing.
func (q *Queue) Question() (*Question, error) {
	v, err := q.look()
	if err == nil {
		v.close()
		return nil, nil
	}
	if !errors.Is(err, ErrNeedsOperator) {
		return nil, err
	}
	asked := &Question{Why: err.Error()}
	s, err := q.openSource(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer s.close()
	places, last, err := q.places(s, asked)
	if err != nil {
		return nil, err
	}
	return asked, q.answers(s, asked, places, last)
}

// places returns the offsets that are known before the inbox is read, and the entry
// id of the last line that was done, or "".
func (q *Queue) places(s *source, asked *Question) (places []Answer, last string, err error) {
	add := func(name string, at int64) {
		if at >= 0 && at <= s.size && s.startsLine(at) {
			places = append(places, Answer{Name: name, Offset: at})
		}
	}
	add("start", 0)
	f, err := q.flightHere(s)
	if err != nil {
		return nil, "", err
	}
	if f != nil {
		shown := f.InFlight
		asked.InFlight = &shown
		if f.here {
			add("in-flight", f.StartOffset)
		}
	}
	c, err := q.readCursor()
	if err != nil {
		return nil, "", err
	}
	if !c.corrupt && !c.missing {
		add("cursor", c.value)
	}
	m, _, err := q.readMeta()
	if err != nil {
		return places, "", err
	}
	if m == nil {
		last, err = q.lastDone()
		return places, last, err
	}
	if c.corrupt || c.missing {
		add("cursor", m.Cursor)
	}
	return places, m.Last, nil
}

// answers reads the inbox, finds more places, and counts what each of them means.
func (q *Queue) answers(s *source, asked *Question, places []Answer, last string) error {
	var starts []int64 // of entries
	end := int64(0)    // of the last whole line
	found := 0
	for l := q.lines(s.file, 0, s.size, q.maxEntry, math.MaxInt64); s.file != nil; {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", q.place.Inbox, err)
		}
		end = got.end
		if got.entry(1) != nil {
			starts = append(starts, got.start)
		}
		if last != "" && got.id() == last && found < mostLast {
			name := "last"
			if found++; found > 1 {
				name = fmt.Sprintf("last-%d", found)
			}
			places = append(places, Answer{Name: name, Offset: got.end})
		}
	}
	places = slices.Insert(places, 1, Answer{Name: "end", Offset: end}) // behind start, before what may be the same place
	slices.SortStableFunc(places, func(a, b Answer) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, p := range slices.CompactFunc(places, func(a, b Answer) bool { return a.Offset == b.Offset }) {
		p.Done, _ = slices.BinarySearch(starts, p.Offset)
		if p.Given = len(starts) - p.Done; p.Given > 0 {
			e, err := q.firstEntry(s, starts[p.Done], 1)
			if err != nil {
				return err
			}
			p.Next = e.Prompt
		}
		asked.Answers = append(asked.Answers, p)
	}
	return nil
}

// flightHere returns the recorded entry in flight, and whether its line is where
// the record says.
func (q *Queue) flightHere(s *source) (*flight, error) {
	f, _, err := q.readFlight()
	if f != nil && s.file != nil {
		q.locateFlight(s, f)
	}
	return f, err
}
