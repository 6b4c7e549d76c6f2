// Package intake takes what anybody has written into an agent's inbox into the store, where it
// is an entry (package entries).
//
// What was taken in does not stay at the inbox's name: the file is exchanged for an empty one of
// the same mode and owner, and goes into the folder taken beside it. So whatever stands at the
// name later is new mail, the same text, too. Then its lines are committed, in their order,
// together with how far they were read. A writer that has the file open goes on writing there: it
// is read until nobody has it open any more, and removed.
//
// While its last line lacks the newline a file stays at its name, and is taken in as far as it is
// whole; where it cannot be exchanged it stays there for good (Taken.InPlace). Then the position
// counts, and whether the file is the one of which that is known: by its inode, its size and a
// hash of what was there.
//
// Nothing here is lost or taken in twice by a kill or a power cut: what was exchanged and is not
// committed is found in the folder, and what was committed was on the disk before.
//
//	at the name ── exchange ──▶ in taken ── commit ──▶ known ── nobody has it open ──▶ removed
//	     └───────── commit, the last line lacks its newline ──▶ known, at the name
//
// The agent can write all of this. What is opened is opened by hook/durable, each read is bounded
// in bytes, and what an agent does to its own mail harms nobody else's.
package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// Place is an inbox.
type Place struct {
	// Agent is the key of the agent whose it is.
	Agent string
	// Dir is the agent's directory, Inbox the file, wherever it is: absolute paths.
	Dir, Inbox string
	// Urgent is true if its lines are handed over before those of other inboxes.
	Urgent bool
	// MaxEntry is the longest line that is queued, in bytes; 0: queue.MaxLine.
	MaxEntry int64
	// HasCheck reports whether the store knows what the work of the entry with an id is checked
	// by; nil: of none.
	HasCheck func(v *store.View, id string) (bool, error)
}

// Bounds of one taking, which is one transaction.
const (
	mostLines = 1000
	mostBytes = 4 << 20
	mostTries = 256  // files of which it is asked whether somebody has them open
	mostMoved = 5000 // files in the folder taken: beyond that no more are moved there
)

// Taken is what one taking has done.
type Taken struct {
	// Queued, Dead and Duplicates count lines: those that are entries, those that are dead
	// letters, and those that were left out because their id was accepted before.
	Queued, Dead, Duplicates int
	// Again is what had come before, as a whole, and was taken in once more.
	Again Again
	// More is true if more can be taken in at once.
	More bool
	// Due is when to look again, though nobody touches the inbox; zero: then is soon enough.
	Due time.Time
	// InPlace is why a file that was taken in stays at the inbox's name; nil: none does. If it is
	// emptied and filled with what it held before, that is not seen.
	InPlace error
	// Old are the names of files that stand beside the inbox and say, as those of earlier versions
	// did, how far it is done. It is not taken in before it is adopted with them, or set aside.
	Old []string
	// Notes are sentences for a log: what was filed or removed, and why.
	Notes []string
}

// Again says that several lines that had come before, in the same order from the first on, have
// come in another file.
type Again struct {
	Lines int64
	Since time.Time // when they came first
}

// taking is one call of Take.
type taking struct {
	*box
	known
	store *store.Store
	now   time.Time
	most  int64
	fresh int64 // the last number that was given
	out   Taken
	done  bool // no more is read now
	read  int64
	mail  []mail
	saved []change
	gone  []*record
	names bool // those in the folders have changed since they were synced
}

// change is a record and what it is written over.
type change struct{ was, is *record }

// mail is a line that is an entry, or a dead letter.
type mail struct {
	entries.New
	checked bool // by what is to be found out
}

// Take takes in what is complete, up to a bound. The caller holds the lock of the agent's
// directory: nobody else takes in the inbox. After an error what was taken in before it counts,
// and the same call goes on where it failed.
func Take(ctx context.Context, s *store.Store, p Place, now time.Time) (Taken, error) {
	b, err := open(p)
	if err != nil {
		return Taken{}, fmt.Errorf("cannot take in the inbox: %w", err)
	}
	if b == nil {
		return Taken{}, nil
	}
	defer b.close()
	t := &taking{box: b, store: s, now: now, most: p.MaxEntry}
	if t.most <= 0 {
		t.most = queue.MaxLine
	}
	t.known, err = store.Get(ctx, s.Reader, func(v *store.View) (known, error) { return load(v, p.Agent, b.key) })
	if err != nil {
		return Taken{}, fmt.Errorf("cannot take in the inbox: %w", err)
	}
	err = t.files(ctx)
	err = errors.Join(err, t.inbox(ctx))
	if err = errors.Join(err, t.commit(ctx)); err != nil {
		return t.out, fmt.Errorf("cannot take in the inbox: %w", err)
	}
	return t.out, nil
}

// files reads what was moved.
func (t *taking) files(ctx context.Context) error {
	all, whole, err := t.list(t.last)
	if err != nil {
		return err
	}
	t.fresh = t.last
	for _, f := range all {
		t.fresh = max(t.fresh, f.n)
	}
	here := map[int64]bool{}
	tries := 0
	var failed []error
	for _, f := range all {
		here[f.n] = true
		r := t.known.files[f.n]
		read := r == nil && f.size == 0 || r != nil && r.moved && r.inode == f.inode && r.size == f.size && r.position == f.size
		switch {
		case read && tries < mostTries:
			tries++
			failed = append(failed, t.remove(f, r))
		case read:
			t.dueAfter(fileQuiet)
		case t.done:
			t.out.More = true
		default:
			failed = append(failed, t.file(ctx, f.n))
		}
	}
	for n, r := range t.known.files {
		if whole && r.moved && !here[n] {
			t.gone = append(t.gone, r)
			if r.position < r.size {
				t.note("the file %q is gone before %d bytes of it were taken in", t.fileName(n), r.size-r.position)
			}
		}
	}
	return errors.Join(failed...)
}

// dueAfter asks for another look.
func (t *taking) dueAfter(wait time.Duration) {
	if at := t.now.Add(wait); t.out.Due.IsZero() || at.Before(t.out.Due) {
		t.out.Due = at
	}
}

// watched is how often a file in the folder taken is looked at that somebody may write.
const watched = time.Second

// remove removes a file all of which was taken in, unless somebody may still write it.
func (t *taking) remove(f found, r *record) error {
	at := f.modified
	if r != nil {
		at = r.at
	}
	if !isDone(f.facts, durable.NotWritten, at, t.now) { // it is too soon to ask
		t.dueAfter(fileQuiet)
		return nil
	}
	name := t.fileName(f.n)
	file, err := t.taken.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if now := factsOf(info); now.inode != f.inode || now.size != f.size || !isDone(now, durable.WritingOf(file), at, t.now) {
		t.dueAfter(watched)
		return nil
	}
	if err := t.taken.Remove(name); err != nil {
		return err
	}
	t.names = true
	if r != nil {
		t.gone = append(t.gone, r)
	}
	return nil
}

// note says something to a log.
func (t *taking) note(format string, args ...any) {
	t.out.Notes = append(t.out.Notes, fmt.Sprintf(format, args...))
}

// file reads the n-th file in the folder taken.
func (t *taking) file(ctx context.Context, n int64) error {
	name := t.fileName(n)
	file, err := t.taken.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	r := t.known.files[n]
	f, is, err := look(file, r)
	if err != nil {
		return err
	}
	other := r != nil && !is
	if r == nil && n <= t.last {
		other, err = store.Get(ctx, t.store.Reader, func(v *store.View) (bool, error) { return wasThere(v, t.place.Agent, t.key, n) })
		if err != nil {
			return err
		}
	}
	if other { // than the one that has, or had, this number
		t.fresh++
		if err := t.taken.Rename(name, t.fileName(t.fresh)); err != nil {
			return err
		}
		if r != nil && r.moved {
			t.gone = append(t.gone, r)
		}
		r, n = nil, t.fresh
	}
	if r == nil || !r.moved {
		t.names = true
	}
	if r != nil && r == t.inPlace {
		t.inPlace = nil
	}
	return t.lines(ctx, file, f, r, record{n: n, moved: true})
}

// look describes an open file, and reports whether a record is of it.
func look(file *os.File, r *record) (facts, bool, error) {
	info, err := file.Stat()
	if err != nil {
		return facts{}, false, err
	}
	f := factsOf(info)
	if r == nil || f.size < r.size {
		return f, false, nil
	}
	seen, err := seenOf(file, r.size)
	return f, r.isOf(f, seen), err
}

// inbox takes in the file at the inbox's name.
func (t *taking) inbox(ctx context.Context) error {
	info, err := t.dir.Stat(t.name)
	switch {
	case t.dangling || errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0:
		if t.inPlace != nil {
			t.gone = append(t.gone, t.inPlace)
		}
		return nil
	case err != nil:
		return err
	case t.done:
		t.out.More = true
		return nil
	}
	if t.out.Old = t.old(); len(t.out.Old) > 0 {
		return nil
	}
	file, err := t.dir.OpenFile(t.name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	r := t.inPlace
	f, is, err := look(file, r)
	if err != nil || f.size == 0 {
		return err
	}
	if r != nil && !is {
		t.gone = append(t.gone, r)
		r = nil
	}
	n := t.fresh + 1
	if r != nil {
		n = r.n
	} else {
		t.fresh = n
	}
	whole := endsWhole(file, f.size)
	givenUp := !whole && age(f.modified, t.now) >= lineQuiet && isEnded(f, durable.WritingOf(file), false, t.now)
	if whole || givenUp {
		err := t.move(file, n, givenUp)
		if err == nil {
			return t.file(ctx, n)
		}
		if !errors.Is(err, errUnfinished) {
			t.out.InPlace = err
		}
	}
	return t.lines(ctx, file, f, r, record{n: n})
}

// lines reads the lines of a file. r is what is known of it; nil: nothing, and fresh is its
// record.
func (t *taking) lines(ctx context.Context, file *os.File, f facts, r *record, fresh record) error {
	next := fresh
	if r != nil {
		next = *r
		next.moved = fresh.moved
	}
	if r == nil {
		next.began = t.now
	}
	came, err := store.Get(ctx, t.store.Reader, func(v *store.View) (map[lineSum]time.Time, error) { return came(v, t.place.Agent, t.key, next.n) })
	if err != nil {
		return err
	}
	in := &lines{from: file, position: next.position, end: f.size, most: max(t.most, mostKept), skipping: next.skipping}
	var again Again
	var failed error
	for {
		if t.done = len(t.mail) >= mostLines || t.read+in.position-next.position >= mostBytes; t.done {
			t.out.More = t.out.More || in.position < f.size
			break
		}
		p, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errEnough) {
			t.done, t.out.More = true, true
			break
		}
		if err != nil {
			failed = fmt.Errorf("cannot read %q: %w", file.Name(), err)
			break
		}
		if !p.complete && !p.cut {
			if !t.isGivenUp(file, f, fresh.moved) {
				break
			}
			in.take(len(p.raw), 0)
			t.note("the last line, of %d bytes, had no newline, and nobody writes it any more: it counts as whole", len(p.raw))
		}
		id, is := t.post(p)
		if !is {
			continue
		}
		next.lines++
		next.hash = follow(next.hash, id)
		if since, is := came[lineSum{next.lines, next.hash}]; is {
			again = Again{next.lines, since}
		}
	}
	t.again(again)
	t.read += in.position - next.position
	if r != nil && in.position == r.position && in.skipping == r.skipping && next.moved == r.moved || r == nil && in.position == 0 {
		return failed // nothing is new
	}
	next.device, next.inode, next.size, next.position, next.skipping, next.at = f.device, f.inode, max(f.size, in.position), in.position, in.skipping, t.now
	if next.seen, err = seenOf(file, next.size); err != nil {
		t.drop()
		return errors.Join(failed, err)
	}
	// What is committed is on the disk: a file that is shorter later was cut by somebody.
	where, name := t.dir, t.name
	if next.moved {
		where, name = t.taken, t.fileName(next.n)
	}
	if err := where.SyncData(file, name); err != nil {
		t.drop()
		return errors.Join(failed, err)
	}
	t.saved = append(t.saved, change{r, &next})
	return failed
}

// drop forgets what was read of all files: it is read again by the next taking.
func (t *taking) drop() { t.mail, t.saved, t.done = nil, nil, true }

// again notes what has come before.
func (t *taking) again(a Again) {
	if a.Lines == 0 {
		return
	}
	t.out.Again.Lines += a.Lines
	if since := t.out.Again.Since; since.IsZero() || a.Since.Before(since) {
		t.out.Again.Since = a.Since
	}
}

// isGivenUp reports whether the last line of a file, which has no newline, is all that there is
// of it.
func (t *taking) isGivenUp(file *os.File, f facts, moved bool) bool {
	wait := lineQuiet - age(f.modified, t.now)
	if wait > 0 {
		t.dueAfter(wait)
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Size() != f.size {
		t.dueAfter(watched)
		return false
	}
	if !isEnded(f, durable.WritingOf(file), moved, t.now) {
		t.dueAfter(watched)
		return false
	}
	return true
}

// post reads a line, and returns its id, or false if it is blank.
func (t *taking) post(p piece) (string, bool) {
	raw := p.raw
	e := queue.Entry{EntryID: line.Sum(raw), Accepted: t.now, State: queue.Queued, Lane: queue.Normal}
	if t.place.Urgent {
		e.Lane = queue.Urgent
	}
	if p.cut || int64(len(raw)) > t.most {
		text := t.large(p, &e)
		t.mail = append(t.mail, mail{New: entries.New{Entry: e, Text: text}})
		return e.EntryID, true
	}
	c := line.Decode(raw, p.start == 0)
	switch c.Kind {
	case line.Blank:
		return "", false
	case line.Fragment:
		kill(&e, queue.Torn, "its line is a fragment: its writer was cut off, or somebody wrote into it", t.now)
		t.mail = append(t.mail, mail{New: entries.New{Entry: e, Text: queue.Text{Prompt: strings.ToValidUTF8(string(raw), "\uFFFD"), Line: raw}}})
		return e.EntryID, true
	}
	e.ID, e.Source, e.Checked = named(c.ID), named(c.Source), c.Checked
	text := queue.Text{Prompt: c.Prompt, Line: raw}
	if same, err := line.Encode(line.Envelope{ID: e.ID, Source: e.Source, Checked: e.Checked, Prompt: c.Prompt}); err == nil && bytes.Equal(bytes.TrimSuffix(same, []byte{'\n'}), raw) {
		text.Line = nil // the other columns make it
	}
	t.mail = append(t.mail, mail{New: entries.New{Entry: e, Text: text}, checked: c.Checked})
	return e.EntryID, true
}

// named is a name that a line gives, or "" where nobody could ask for it.
func named(name string) string {
	if len(name) > queue.MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	return name
}

// kill makes a line a dead letter.
func kill(e *queue.Entry, why queue.Reason, cause string, now time.Time) {
	e.State, e.Reason, e.Cause, e.Ended = queue.Dead, why, cause, now
}

// mostShown is how much of a line that is too long stands in its dead letter, in bytes.
const mostShown = 4 << 10

// large makes a line that is too long a dead letter, which names the file that has its beginning.
func (t *taking) large(p piece, e *queue.Entry) queue.Text {
	length := fmt.Sprintf("%d bytes", len(p.raw))
	if p.cut {
		length = "more than " + length
	}
	cause := fmt.Sprintf("its line has %s, the limit is %d", length, t.most)
	kept, err := t.keepLarge(p.raw, t.now)
	if err == nil {
		cause += "; it is kept as " + kept
		if p.cut {
			cause += ", as far as that"
		}
	} else {
		cause += fmt.Sprintf("; it could not be kept: %v", err)
	}
	kill(e, queue.TooLarge, cause, t.now)
	shown, _ := queue.Cut(strings.ToValidUTF8(string(p.raw[:min(len(p.raw), mostShown+utf8.UTFMax)]), "\uFFFD"), mostShown)
	return queue.Text{Prompt: shown, Length: int64(len(p.raw))}
}

// commit writes what was read, and how far.
func (t *taking) commit(ctx context.Context) error {
	if len(t.saved) == 0 && len(t.gone) == 0 {
		return nil
	}
	if t.names && t.taken != nil { // a file that is known is where the store says, also after a power cut
		if err := errors.Join(t.taken.Sync(), t.dir.Sync()); err != nil {
			return err
		}
	}
	var done Taken
	err := t.store.Write(ctx, func(c *store.Change) error {
		done = t.out
		return t.write(c, &done)
	})
	if err == nil {
		t.out = done
	}
	return err
}

func (t *taking) write(c *store.Change, done *Taken) error {
	agent := t.place.Agent
	for _, r := range t.gone {
		if err := end(c, agent, t.key, r, t.now); err != nil {
			return err
		}
	}
	if len(t.gone) > 0 {
		if err := forget(c, agent, t.key, t.last, t.now); err != nil {
			return err
		}
	}
	for _, s := range t.saved {
		if err := save(c, agent, t.key, s.was, s.is); err != nil {
			return err
		}
	}
	var all []entries.New
	ids := map[string]string{} // :: id → prompt, of this taking
	for _, m := range t.mail {
		is, err := t.settle(c, &m, ids)
		if err != nil {
			return err
		}
		switch {
		case !is:
			done.Duplicates++
			continue
		case m.State == queue.Dead:
			done.Dead++
			done.Notes = append(done.Notes, fmt.Sprintf("a line is a dead letter, %s: %s", m.Reason, m.Cause))
		default:
			done.Queued++
		}
		all = append(all, m.New)
	}
	return entries.InsertAll(c, agent, all)
}

// settle decides what the store has to say about a line, and reports whether it comes in.
func (t *taking) settle(c *store.Change, m *mail, ids map[string]string) (bool, error) {
	if m.ID != "" {
		prompt, before := ids[m.ID]
		differs := before && prompt != m.Prompt
		if !before {
			a, is, err := entries.Accepted(&c.View, t.place.Agent, m.ID, m.Prompt)
			if err != nil {
				return false, err
			}
			before, differs = is, is && a.Differs
		}
		switch {
		case differs:
			kill(&m.Entry, queue.IDTaken, fmt.Sprintf("another prompt was accepted with its id, %s", m.ID), t.now)
			if m.Line == nil {
				m.Line, _ = line.Encode(line.Envelope{ID: m.ID, Source: m.Source, Checked: m.Checked, Prompt: m.Prompt})
				m.Line = bytes.TrimSuffix(m.Line, []byte{'\n'})
			}
			m.ID = "" // it names the other one
			return true, nil
		case before:
			return false, nil
		}
		ids[m.ID] = m.Prompt
	}
	if !m.checked || m.State == queue.Dead {
		return true, nil
	}
	if t.place.HasCheck != nil && m.ID != "" {
		if has, err := t.place.HasCheck(&c.View, m.ID); has || err != nil {
			return true, err
		}
	}
	kill(&m.Entry, queue.NoCheck, "its line says that its work is checked, and nobody knows by what", t.now)
	return true, nil
}
