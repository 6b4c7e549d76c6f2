package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// Question is what a queue asks a person when it does not know where to continue
// (ErrNeedsOperator), because deciding by itself could lose or repeat entries.
type Question struct {
	// Why says what happened.
	Why string `json:"why"`
	// Urgent is true where the urgent lane asks.
	Urgent bool `json:"urgent,omitempty"`
	// InFlight is the entry that a session had; nil when none is known.
	InFlight *InFlight `json:"in_flight,omitempty"`
	// Answers are the places where the queue may continue, in the order of the
	// file.
	Answers []Answer `json:"answers"`
	// Missing are the first entries that every answer loses, because they do not stand in
	// the inbox any more (Answer.Missing).
	Missing []Vanished `json:"missing,omitempty"`
	// MissingUnknown is why it is not known whether there are such entries, and which; then
	// Missing, and what the answers say of it, is empty. "": it is known.
	MissingUnknown string `json:"missing_unknown,omitempty"`
}

// Answer is a place in the inbox where the queue may continue.
type Answer struct {
	// Name is start, cursor (where the cursor was), in-flight (the entry that a
	// session had), last (after the last line that was done; when that line occurs
	// several times: last, last-2 and so on), end, or offset (one that was asked for).
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	// Done counts the entries before it, which then count as done. Given counts
	// those after it, which are handed over even if they were before.
	Done  int `json:"done"`
	Given int `json:"given"`
	// Loses are those before it that nobody has done or given up, as far as the outbox
	// and the dead letters tell; they would never be handed over. Repeats are those
	// after it that were done. LostFirst and RepeatedFirst are the prompts of the first
	// ones, or "".
	Loses         int    `json:"loses"`
	Repeats       int    `json:"repeats"`
	LostFirst     string `json:"lost_first,omitempty"`
	RepeatedFirst string `json:"repeated_first,omitempty"`
	// Missing counts the entries that were queued, stand nowhere in the inbox and are not
	// done: they become dead letters, Lost, with their text where that is known. MissingIDs
	// are the ids of the first ones, as far as they have one. What is not certain is not
	// among them. MissingUnknown: there may be some, see Question.
	Missing        int      `json:"missing,omitempty"`
	MissingIDs     []string `json:"missing_ids,omitempty"`
	MissingUnknown bool     `json:"missing_unknown,omitempty"`
	// Next is the prompt of the first entry after it, or "".
	Next string `json:"next,omitempty"`
}

// mostLast bounds how many occurrences of the last line that was done are offered.
const mostLast = 8

// ByHand is what a person does about ErrNeedsOperator where no command does it.
func (q *Queue) ByHand() string {
	if l, _ := q.asking(); l != nil {
		return l.byHand()
	}
	return q.inbox().byHand()
}

func (q *lane) byHand() string {
	return fmt.Sprintf("write the byte offset of the first line that is not done into %q (0 repeats all of them), and remove %q",
		q.dir.Path()+"/"+q.cursor, q.dir.Path()+"/"+q.meta)
}

// keepAsking remembers what the queue asks: what others do to the inbox before a person
// answers is no answer. A failure costs only that.
func (h *heldLane) keepAsking(asked error) {
	m, _, err := h.readMeta()
	c, cursorErr := h.readCursor()
	switch {
	case err != nil, cursorErr != nil, m != nil && m.Asks != "":
		return
	case m == nil && c.corrupt:
		return // nothing but an answer changes that
	case m == nil:
		m = &meta{Generation: newGeneration(), Tail: sumOf([]byte{})}
		if m.Last, err = h.lastDone(); err != nil {
			return
		}
	}
	m.Asks = strings.TrimPrefix(asked.Error(), ErrNeedsOperator.Error()+": ")
	_ = h.writeMeta(*m)
}

// Question returns what the queue asks a person, or nil when it asks nothing. Among
// the answers are the offsets at which a line begins. It reads the whole inbox, needs
// no lock and changes nothing.
func (q *Queue) Question(offsets ...int64) (*Question, error) {
	l, err := q.asking()
	if l == nil || !errors.Is(err, ErrNeedsOperator) {
		return nil, err
	}
	return l.question(offsets)
}

func (q *lane) question(offsets []int64) (*Question, error) {
	v, err := q.look()
	if err == nil {
		v.close()
		return nil, nil
	}
	if !errors.Is(err, ErrNeedsOperator) {
		return nil, err
	}
	asked := &Question{Why: err.Error(), Urgent: q.urgent}
	s, err := q.openSource(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer s.close()
	places, last, err := q.places(s, asked)
	if err != nil {
		return nil, err
	}
	for _, at := range offsets {
		if at >= 0 && at <= s.size && s.startsLine(at) {
			places = append(places, Answer{Name: "offset", Offset: at})
		}
	}
	if err := q.answers(s, asked, places, last); err != nil {
		return nil, err
	}
	q.foresee(asked)
	return asked, nil
}

// places returns the offsets that are known before the inbox is read, and the entry
// id of the last line that was done, or "".
func (q *lane) places(s *source, asked *Question) (places []Answer, last string, err error) {
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
func (q *lane) answers(s *source, asked *Question, places []Answer, last string) error {
	done := map[[8]byte]bool{}
	if err := q.everDone(done); err != nil {
		return err
	}
	var all tally
	end := int64(0) // of the last whole line
	found := 0
	known := int64(-1) // the end of the last line with an id that is done
	for l := q.lines(s.file, 0, s.size, q.maxEntry, math.MaxInt64); s.file != nil; {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", q.path, err)
		}
		end = got.end
		if e := q.entry(got, 1); e != nil {
			over := done[keyOf(e.ID, e.Raw)]
			if all.add(e.Start, over); over && e.ID != "" {
				known = got.end
			}
		}
		if last != "" && got.id() == last && found < mostLast {
			name := "last"
			if found++; found > 1 {
				name = fmt.Sprintf("last-%d", found)
			}
			places = append(places, Answer{Name: name, Offset: got.end})
		}
	}
	if found == 0 && known >= 0 {
		places = append(places, Answer{Name: "last", Offset: known})
	}
	places = slices.Insert(places, 1, Answer{Name: "end", Offset: end}) // behind start, before what may be the same place
	slices.SortStableFunc(places, func(a, b Answer) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, p := range slices.CompactFunc(places, func(a, b Answer) bool { return a.Offset == b.Offset }) {
		if err := q.weighAnswer(s, &p, all); err != nil {
			return err
		}
		asked.Answers = append(asked.Answers, p)
	}
	return nil
}

// tally are the entries of an inbox, in order.
type tally struct {
	starts []int64
	done   []bool
}

func (t *tally) add(start int64, done bool) {
	t.starts, t.done = append(t.starts, start), append(t.done, done)
}

// weighAnswer says what an answer means.
func (q *lane) weighAnswer(s *source, a *Answer, all tally) (err error) {
	a.Done, _ = slices.BinarySearch(all.starts, a.Offset)
	a.Given = len(all.starts) - a.Done
	var lost, repeated int64 = -1, -1
	for i, done := range all.done {
		switch {
		case i < a.Done && !done:
			if a.Loses++; lost < 0 {
				lost = all.starts[i]
			}
		case i >= a.Done && done:
			if a.Repeats++; repeated < 0 {
				repeated = all.starts[i]
			}
		}
	}
	next := int64(-1)
	if a.Given > 0 {
		next = all.starts[a.Done]
	}
	prompt := func(at int64) string {
		if at < 0 || err != nil {
			return ""
		}
		var e *Entry
		if e, err = q.firstEntry(s, at, 1); e == nil {
			return ""
		}
		return e.Prompt
	}
	a.Next, a.LostFirst, a.RepeatedFirst = prompt(next), prompt(lost), prompt(repeated)
	return err
}

// flightHere returns the recorded entry in flight, and whether its line is where
// the record says.
func (q *lane) flightHere(s *source) (*flight, error) {
	f, _, err := q.readFlight()
	if f != nil && s.file != nil {
		q.locateFlight(s, f)
	}
	return f, err
}
