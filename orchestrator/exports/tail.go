package exports

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/entries"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// How much of the end of a file is looked at, in bytes: at first; as long as no line of ours is
// found; and at most, while all lines of ours that are found are ahead of the store.
const (
	tailFirst   = 64 << 10
	tailForeign = 4 << 20
	tailMost    = MaxFile
	// longestLine bounds a line that is read: JSON makes a text up to six times as long.
	longestLine = 16 << 20
)

// shown is an end that an export shows, without its agent.
type shown struct {
	delivery, entryID, id, source string
	urgent, checked               bool
	line                          []byte // of a dead one
	length                        int64
	excerpt                       string
	entries.Past
}

// text is what is known of what the entry says.
func (s *shown) text() queue.Text {
	if len(s.line) == 0 {
		return queue.Text{Prompt: s.excerpt, Length: s.length}
	}
	return queue.Text{Prompt: line.Decode(s.line, false).Prompt, Line: s.line}
}

// ahead is what an agent's exports show that its store does not know.
type ahead struct {
	done, dead int64 // the last numbers
	hidden     int64 // ends that no line tells of any more
	ends       []shown
}

// lookAhead looks for ends behind the store's. What cannot be read, or is not ours, means nothing.
func (s sealer) lookAhead(at Place, n entries.Counts) (a ahead) {
	last := map[string]shown{} // by delivery id, the last end of each entry
	for _, k := range kinds {
		known, names := n.Done, []string{Outbox, OlderOutbox}
		if k.state == queue.Dead {
			known, names = n.Dead, []string{DeadLetters}
		}
		found := map[int64]shown{}
		for _, name := range names {
			if s.tail(at, k, name, known, found) {
				break
			}
		}
		most := known
		for _, n := range slices.Sorted(maps.Keys(found)) {
			e := found[n]
			if before, is := last[e.delivery]; !is || before.Reason != "" { // what is done stays so
				last[e.delivery] = e
			}
			most = max(most, n)
		}
		if k.state == queue.Done {
			a.done = most
		} else {
			a.dead = most
		}
		a.hidden += most - known - int64(len(found))
	}
	a.ends = slices.SortedFunc(maps.Values(last), func(a, b shown) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.N, b.N)) })
	return a
}

// tail takes the lines of ours behind a number from the end of a file. It reports whether what is
// before them need not be looked at.
func (s sealer) tail(at Place, k kind, name string, known int64, found map[int64]shown) (enough bool) {
	path := at.Home
	if k.state == queue.Dead {
		path = at.Inbox
	}
	in, err := durable.OpenBelow(at.Dir, path)
	if err != nil {
		return true
	}
	defer in.Close()
	file, err := in.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	for window := int64(tailFirst); ; window *= 4 {
		from := max(0, info.Size()-window)
		ours := false
		eachLine(io.NewSectionReader(file, from, info.Size()-from), from > 0, func(raw []byte) {
			if !s.isOurs(k, at.Agent, raw) {
				return
			}
			e, of, err := parse(k, raw)
			if err != nil || of.Store != s.store {
				return
			}
			ours = true
			if of.N > known {
				found[of.N] = e
			} else {
				enough = true
			}
		})
		if enough || from == 0 || window >= tailMost || !ours && window >= tailForeign {
			return enough
		}
	}
}

// eachLine gives the whole lines of r to take, but the first one if it is torn. A line is valid
// until take returns. One that is too long is passed over.
func eachLine(r io.Reader, torn bool, take func(raw []byte)) {
	b := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	tooLong := torn
	for {
		piece, err := b.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full {
			return // what has no newline is not whole
		}
		if len(long)+len(piece) > longestLine {
			tooLong, long = true, nil
		}
		if full {
			if !tooLong {
				long = append(long, piece...)
			}
			continue
		}
		if !tooLong {
			if len(long) > 0 {
				piece = append(long, piece...)
			}
			take(bytes.TrimSuffix(piece, []byte{'\n'}))
		}
		long, tooLong = long[:0], false
	}
}

// parse reads a line of ours.
func parse(k kind, raw []byte) (e shown, of seal, err error) {
	if err := json.Unmarshal(raw, &of); err != nil {
		return e, of, err
	}
	if k.state == queue.Dead {
		var d DeadLetter
		if err := json.Unmarshal(raw, &d); err != nil {
			return e, of, err
		}
		e = shown{delivery: d.DeliveryID, entryID: d.EntryID, id: d.ID, source: d.Source, urgent: d.Urgent, line: line.FromJSON(d.RawLine, d.RawBase64), length: d.Length, excerpt: d.Excerpt}
		e.checked = line.Decode(e.line, false).Checked
		e.Past = entries.Past{
			N: of.N, Reason: d.Reason, Cause: d.Cause, At: d.At, Attempt: d.Attempts, Repeats: d.Counted, Iteration: d.Iterations,
			Handover: queue.Handover{At: d.DeliveredAt}, Output: d.Output,
		}
		return e, of, nil
	}
	var d Delivery
	if err := json.Unmarshal(raw, &d); err != nil {
		return e, of, err
	}
	e = shown{delivery: d.DeliveryID, entryID: d.EntryID, id: d.ID, source: d.Source, urgent: d.Urgent, checked: d.Verdict != nil}
	e.Past = entries.Past{
		N: of.N, At: d.AcknowledgedAt, Attempt: d.Attempt, Handover: queue.Handover{Session: d.Session, At: d.DeliveredAt},
		Reply: queue.Reply{Session: d.Session, Text: d.Reply, Cut: d.ReplyCut, Abandoned: d.Abandoned, At: d.AcknowledgedAt},
	}
	if v := d.Verdict; v != nil {
		e.Iteration = v.Iteration
		e.Verdict = &entries.Verdict{Iteration: v.Iteration, By: v.By, Took: took(v.TookMS), At: d.AcknowledgedAt}
		e.Verdict.Passed = true
	}
	return e, of, nil
}
