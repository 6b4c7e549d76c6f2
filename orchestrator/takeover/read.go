package takeover

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/handwired/files"
	"heartbeat/orchestrator/entries"
)

// The files of heartbeat's earlier design that package files does not know.
const (
	waitingFile = ".waiting.jsonl"
	sessionFile = "session.json"
	laterFolder = "later"
	laterLock   = ".lock"
)

// begunFile and keptFile are beside an inbox: what had begun with it, and a second name of it.
func begunFile(inbox string) string { return "." + inbox + ".begun" }
func keptFile(inbox string) string  { return "." + inbox + ".kept" }

// Bounds of what is read at once, in bytes and files.
const (
	mostFile    = 256 << 20 // of one in the state directory
	mostWaiting = 256 << 20
	mostLater   = 1000
	mostPrompt  = 6*8<<20 + 4096
	idsKept     = 100_000
	idsFor      = 7 * 24 * time.Hour
)

// queueFiles is a queue in files that is open, with its old locks.
type queueFiles struct {
	readers []*files.Reader
	views   []*files.View
	unlock  []func() error
}

func (q *queueFiles) close() (err error) {
	for _, v := range q.views {
		v.Close()
	}
	for _, r := range q.readers {
		err = errors.Join(err, r.Close())
	}
	for _, unlock := range slices.Backward(q.unlock) {
		err = errors.Join(err, unlock())
	}
	return err
}

// lock takes the locks by which earlier versions change a queue: of its session, of its hooks.
func (q *queueFiles) lock(ctx context.Context, in *durable.Folder) error {
	for _, name := range []string{files.SessionLock, files.HookLock} {
		unlock, err := flock.LockIn(ctx, in, name)
		if err != nil {
			return fmt.Errorf("cannot take over the queue in %q, which somebody uses: %w", in.Path(), err)
		}
		q.unlock = append(q.unlock, unlock)
	}
	return nil
}

// place is where a queue in files is.
type place struct {
	dir, inbox, home string
	max              int64
}

func placeOf(a *config.Agent) place { return place{a.Dir, a.Inbox, a.Home, a.MaxEntry} }

// read reads a queue into f, which has what the state directory knows. The error matches
// files.ErrNeedsOperator where only a person can say how far it is done.
func (q *queueFiles) read(f *former, p place) error {
	home := "" // the inbox's folder
	if err := within(p.dir, p.home, func(*durable.Folder) error { home = p.home; return nil }); err != nil {
		return err
	}
	aside := map[string]bool{} // :: delivery id of what is set aside
	for _, a := range f.apart {
		aside[a.DeliveryID] = true
	}
	all := []files.Lane{files.Urgent, files.Inbox}
	if filepath.Base(p.inbox) == files.Urgent.Lines { // the inbox has its name
		all = all[1:]
	}
	for _, l := range all {
		r, err := files.OpenReader(files.Place{Inbox: p.inbox, Home: home, Dir: p.dir, MaxEntry: p.max}, l)
		if err != nil {
			return err
		}
		q.readers = append(q.readers, r)
	}
	in := q.readers[0]
	stray, err := waiting(p)
	if err != nil {
		return err
	}
	for _, s := range stray {
		if !aside[s.DeliveryID] {
			f.stray = append(f.stray, s)
		}
		aside[s.DeliveryID] = true
	}
	for i, r := range q.readers[:len(all):len(all)] {
		r.Aside = aside
		urgent := i == 0 && len(all) > 1
		l, err := q.lane(r, urgent)
		if err == nil {
			err = q.former(l, p, home, all[i])
		}
		if err != nil {
			return err
		}
		f.lanes = append(f.lanes, l)
	}
	if err := f.readEnds(in); err != nil {
		return err
	}
	if err := f.readWork(p); err != nil {
		return err
	}
	return f.readBegun(p)
}

// readWork reads what the last session worked on: its record of the entry may have been removed.
func (f *former) readWork(p place) error {
	return within(p.dir, p.home, func(in *durable.Folder) error {
		data, err := in.Read(sessionFile, 1<<20)
		if err == nil {
			_ = json.Unmarshal(data, &struct{ Work any }{&f.work}) // the agent can write it
		}
		return missing(err)
	})
}

// lane looks into one lane.
func (q *queueFiles) lane(r *files.Reader, urgent bool) (*lane, error) {
	v, err := r.Look()
	if err != nil {
		if errors.Is(err, files.ErrNeedsOperator) {
			err = fmt.Errorf("%w; %s", err, r.ByHand())
		}
		return nil, err
	}
	q.views = append(q.views, v)
	l := &lane{
		urgent: urgent, flight: v.InFlight(), byRs: v.IsHandedByRs(), damaged: v.IsDamaged(), again: v.Requeued(), lost: v.Lost(),
		queued: v.Queued, late: v.Late,
	}
	l.flagged, err = r.IsFlagged()
	return l, err
}

// former looks into the file that was the inbox before another one took its place: it has a second
// name. What was queued in it has its text there.
func (q *queueFiles) former(l *lane, p place, home string, is files.Lane) error {
	lines := is.Lines
	if lines == "" {
		lines = filepath.Base(p.inbox)
	}
	other := false
	if err := within(p.dir, filepath.Dir(p.inbox), func(in *durable.Folder) error {
		was, err := in.Stat(keptFile(lines))
		if err != nil || !was.Mode().IsRegular() {
			return missing(err)
		}
		now, err := in.Stat(lines)
		other = err != nil || inodeOf(now) != inodeOf(was) && now.Mode().IsRegular()
		return missing(err)
	}); !other || err != nil {
		return err
	}
	is.Lines, is.Record, is.Flag = keptFile(lines), ".nothing-in-flight", ""
	r, err := files.OpenReader(files.Place{Inbox: p.inbox, Home: home, Dir: p.dir, MaxEntry: p.max}, is)
	if err != nil {
		return err
	}
	q.readers = append(q.readers, r)
	v, err := r.Look()
	if errors.Is(err, files.ErrNeedsOperator) {
		return nil // its text is not known
	}
	if err != nil {
		return err
	}
	if q.views = append(q.views, v); len(v.Notes()) == 0 {
		l.gone = v.Queued
	}
	return nil
}

// readEnds reads what has ended, and which ids were accepted.
func (f *former) readEnds(r *files.Reader) error {
	f.ended = map[string]bool{}
	last, err := r.LastDelivery()
	if err != nil {
		return err
	}
	if last != nil {
		f.last = last.DeliveryID
	}
	accepted := map[string]time.Time{}
	note := func(id string, at time.Time) {
		if _, is := accepted[id]; !is && id != "" {
			accepted[id] = at
		}
	}
	err = r.IDs(func(k files.ID) bool { note(k.ID, k.Accepted()); return true })
	if err == nil {
		err = r.Deliveries(func(d files.Delivery) bool {
			f.ended[d.DeliveryID] = true
			note(d.ID, d.AcknowledgedAt)
			if d.ID != "" && f.isAwaited(d) {
				f.awaited = append(f.awaited, d)
			}
			return true
		})
	}
	if err == nil || errors.Is(err, durable.ErrNotRegular) {
		err = r.DeadLetters(func(d files.Dead) bool {
			f.dead = append(f.dead, d)
			note(d.ID, cmp.Or(d.DeliveredAt, d.At))
			return true
		})
	}
	if err != nil && !errors.Is(err, durable.ErrNotRegular) { // what is no file holds nothing
		return err
	}
	for id, at := range accepted {
		f.ids = append(f.ids, entries.ID{ID: id, At: at})
	}
	slices.SortFunc(f.ids, func(x, y entries.ID) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	old := time.Now().Add(-idsFor)
	for len(f.ids) > idsKept && f.ids[0].At.Before(old) {
		f.ids = f.ids[1:]
	}
	return nil
}

// readBegun reads what people had begun to do.
func (f *former) readBegun(p place) error {
	return within(p.dir, filepath.Dir(p.inbox), func(in *durable.Folder) error {
		data, err := in.Read(begunFile(filepath.Base(p.inbox)), 64<<20)
		if err != nil || json.Unmarshal(data, &f.begun) != nil {
			return missing(err)
		}
		return nil
	})
}

// missing is an error but for what is not there, or is no file of ours.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) || errors.Is(err, durable.ErrNotFolder) {
		return nil
	}
	return err
}

// within has do use a folder of an agent, if it is there.
func within(dir, path string, do func(*durable.Folder) error) error {
	in, err := durable.OpenBelow(dir, path)
	if err != nil {
		return missing(err)
	}
	return errors.Join(do(in), in.Close())
}

// waiting returns what is set aside by the agent's own file.
func waiting(p place) (all []*files.Record, err error) {
	err = within(p.dir, filepath.Dir(p.inbox), func(in *durable.Folder) error {
		data, err := in.Read(waitingFile, mostWaiting)
		for raw := range bytes.Lines(data) {
			f := files.RecordOf(raw)
			if f == nil || len(f.Aside) == 0 || f.State != "checking" && f.State != "unproven" {
				continue
			}
			if all = append(all, f); len(all) == 20 { // an agent may have added some
				break
			}
		}
		return missing(err)
	})
	return all, err
}

// readLater reads the prompts whose time has not come, in a folder whose lock is held, and the
// names of their files.
func readLater(in *durable.Folder) (all []later, names []string, err error) {
	found, err := in.Entries()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		if !strings.HasSuffix(e.Name(), ".json") || len(all) == mostLater {
			continue
		}
		var l later
		data, err := in.Read(e.Name(), mostPrompt)
		if missing(err) != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(nil)
		if err == nil && json.Unmarshal(data, &l) == nil {
			sum = sha256.Sum256([]byte(l.ID))
		}
		if hex.EncodeToString(sum[:12])+".json" != e.Name() || strings.TrimSpace(l.Text) == "" || l.ID == "" {
			continue // it is not what heartbeat has written
		}
		all, names = append(all, l), append(names, e.Name())
	}
	slices.SortFunc(all, func(x, y later) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	return all, names, nil
}

// stateFiles are what a state directory holds of an agent's queue, relative to it.
func stateFiles(inbox, key string) (book, asides, demands, texts string) {
	key, hash := filepath.Base(key), hashOf(inbox, 8)
	return filepath.Join("proofs", key+".json"), filepath.Join("asides", key), filepath.Join("demands", hash), filepath.Join("texts", hash)
}

func hashOf(s string, length int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:length])
}

// readKept reads what the state directory knows of an agent's queue. What is damaged there is
// noted.
func readKept(stateDir, inbox, key string) (k kept, asides []apart, notes []string, err error) {
	k = kept{demands: map[string]demand{}, texts: map[string]string{}}
	book, folder, demands, texts := stateFiles(inbox, key)
	damaged := func(path string) { notes = append(notes, fmt.Sprintf("%q is damaged, and is not taken over", path)) }
	switch data, err := durable.Read(filepath.Join(stateDir, book), mostFile); {
	case missing(err) != nil:
		return k, nil, nil, err
	case err == nil && json.Unmarshal(data, &k.book) != nil:
		damaged(book)
	}
	each := func(folder string, do func(name string, data []byte) bool) error {
		in, err := durable.Open(filepath.Join(stateDir, folder))
		if err != nil {
			return missing(err)
		}
		found, err := in.Entries()
		for _, e := range found {
			if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") || err != nil {
				continue
			}
			var data []byte
			if data, err = in.Read(e.Name(), mostFile); err == nil && !do(e.Name(), data) {
				damaged(filepath.Join(folder, e.Name()))
			}
			err = missing(err)
		}
		return errors.Join(err, in.Close())
	}
	err = each(folder, func(_ string, data []byte) bool {
		var a struct {
			Flight       json.RawMessage
			Conversation string
		}
		if json.Unmarshal(data, &a) != nil {
			return false
		}
		f := files.RecordOf(a.Flight)
		if f == nil || len(f.Aside) == 0 {
			return false
		}
		asides = append(asides, apart{f, a.Conversation})
		return true
	})
	slices.SortStableFunc(asides, func(x, y apart) int {
		a, _ := asideOf(x.Record)
		b, _ := asideOf(y.Record)
		return a.Since.Compare(b.Since)
	})
	if err == nil {
		err = each(demands, func(_ string, data []byte) bool {
			var d demand
			if json.Unmarshal(data, &d) != nil || d.ID == "" || (d.Until != nil) == d.Nothing {
				return false
			}
			k.demands[d.ID] = d
			return true
		})
	}
	if err == nil {
		err = k.readTexts(each, texts, inbox)
	}
	return k, asides, notes, err
}

// readTexts reads what entries were queued with. Files that were written at once hold several.
func (k *kept) readTexts(each func(string, func(string, []byte) bool) error, folder, inbox string) error {
	type text struct {
		ID, Inbox, Text string
		Unsure          bool
	}
	return each(folder, func(name string, data []byte) bool {
		var all []text
		if !bytes.HasPrefix(data, []byte("[")) {
			data = slices.Concat([]byte("["), data, []byte("]"))
		}
		if json.Unmarshal(data, &all) != nil {
			return true // a power cut leaves that
		}
		for _, t := range all {
			if t.Inbox == inbox && hashOf(t.ID, 16)+".json" == name && !t.Unsure {
				k.texts[t.ID] = t.Text
			}
		}
		return true
	})
}
