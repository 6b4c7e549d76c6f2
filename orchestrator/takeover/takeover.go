// Package takeover takes a queue in files, of heartbeat-rs or of heartbeat's earlier design, into
// the store: once, when a run first locks its agent's directory. README.md says how each file is
// taken, or why it is not. It alone still reads what earlier designs kept of a queue.
//
// All that decides anything comes in one transaction, with the old locks held, which also notes
// that it did, and of which files. Then these are moved to before-store/. So a kill at any moment
// loses nothing, and takes nothing twice. Old files that are there later (a backup of the
// directory was restored, it was copied) are set aside until a person says that they are to be
// taken (Adopt).
//
// What a queue is like is read into values; what becomes of it in the store (rows) is decided
// purely. Nothing is recovered here: an entry in flight is in flight afterwards, with its hand-over
// as it was recorded.
package takeover

import (
	"context"
	_ "embed" // for Schema
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/handwired/files"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/intake"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Schema makes the tables. It becomes a step of the store with the commit that makes the store
// the queue.
//
//go:embed schema.sql
var Schema string

// lockWait is how long is waited for whoever has the old locks.
const lockWait = 5 * time.Second

// Report says what was taken, and what was not.
type Report struct {
	// Live counts the entries that have not ended, Dead the dead letters, IDs the ids of entries
	// that have ended.
	Live, Dead, IDs int
	// Asks is why nothing was taken: only a person can say how far the queue is done, and by what;
	// nil: that is known. Nothing may be taken in, handed over or run for the agent until then.
	Asks error
	// SetAside are the folders to which old files were moved that appeared later: see Adopt.
	SetAside []string
	// Owed is why files that were taken, or set aside, are still where they were; nil: none are.
	Owed error
	// Notes are sentences for a log.
	Notes []string
}

// taker takes over the queue of one agent.
type taker struct {
	store    *store.Store
	stateDir string
	agent    *config.Agent
	key      string
	now      time.Time
	out      Report
	// guard is that of the folders: see durable.Folder.
	guard func(s durable.Step, run func() error) error
}

// Take takes over an agent's queue in files, if there is one that was not taken before. key is the
// agent's permanent key. The caller holds the lock of the agent's directory, and calls it before
// the inbox is taken in (package intake), at each start.
func Take(ctx context.Context, s *store.Store, stateDir string, a *config.Agent, key string) (Report, error) {
	t := &taker{store: s, stateDir: stateDir, agent: a, key: key, now: time.Now()}
	return t.take(ctx)
}

func (t *taker) take(ctx context.Context) (Report, error) {
	err := t.inOrder(ctx)
	if errors.Is(err, files.ErrNeedsOperator) {
		t.out, err = Report{Asks: err}, nil
	}
	if err != nil {
		err = fmt.Errorf("cannot take over the queue of %s: %w", t.agent.Name, err)
	}
	return t.out, err
}

// inOrder takes over the queue, if that was not done, and does with its files what is left to do.
func (t *taker) inOrder(ctx context.Context) error {
	k, err := t.known(ctx)
	if err != nil {
		return err
	}
	there, err := t.stands(k)
	if err != nil {
		return err
	}
	switch {
	case k.here && k.moved && (there || t.isUnended()):
		err = t.setAside()
	case !k.here && (there || !k.elsewhere):
		k.here = true
		err = t.adopt(ctx, placeOf(t.agent), true)
	}
	if err == nil {
		err = t.takeLater(ctx) // what these have to pass is moved afterwards
	}
	if err != nil || !k.here || k.moved {
		return err
	}
	return t.move(ctx)
}

// known is what the store knows of an agent's queues in files.
type known struct {
	here, moved bool // the one in this place was taken; its files were moved
	elsewhere   bool // one was, in another place
	files       map[string]int64
}

func (t *taker) known(ctx context.Context) (known, error) {
	return store.Get(ctx, t.store.Reader, func(v *store.View) (k known, err error) {
		k.files = map[string]int64{}
		err = v.Each(`SELECT inbox, moved FROM takeovers WHERE agent = $1`, []any{t.key}, func(row store.Scan) error {
			var inbox string
			var moved bool
			err := row(&inbox, &moved)
			if inbox == t.agent.Inbox {
				k.here, k.moved = true, moved
			} else {
				k.elsewhere = true
			}
			return err
		})
		if err != nil {
			return k, err
		}
		return k, v.Each(`SELECT file, inode FROM takeover_files WHERE agent = $1`, []any{t.key}, func(row store.Scan) error {
			var file string
			var inode int64
			err := row(&file, &inode)
			k.files[file] = inode
			return err
		})
	})
}

// markers are files without which a queue in files is no old one.
var markers = []string{
	files.Inbox.Cursor, files.Inbox.Sidecar, files.Inbox.Record,
	files.Urgent.Cursor, files.Urgent.Sidecar, files.Urgent.Record,
}

// stands reports whether a queue in files is there that was not taken.
func (t *taker) stands(k known) (there bool, err error) {
	err = t.within(filepath.Dir(t.agent.Inbox), func(in *durable.Folder) error {
		for _, name := range markers {
			info, err := in.Stat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			there = there || k.files[name] != inodeOf(info)
		}
		return nil
	})
	return there, err
}

// within has do use a folder of the agent, if it is there.
func (t *taker) within(path string, do func(*durable.Folder) error) error {
	return within(t.agent.Dir, path, func(in *durable.Folder) error {
		in.Guard = t.guard
		return do(in)
	})
}

// adopt takes the queue in a place. first is true for that of the agent itself, to which belongs
// what the state directory knows.
func (t *taker) adopt(ctx context.Context, at place, first bool) (err error) {
	var q queueFiles
	defer func() { err = errors.Join(err, q.close()) }()
	there, names := false, map[string]int64{}
	if err := t.within(filepath.Dir(at.inbox), func(in *durable.Folder) error {
		there = true
		waits, cancel := context.WithTimeout(ctx, lockWait)
		defer cancel()
		if err := q.lock(waits, in); err != nil {
			return err
		}
		names, err = present(in, filepath.Base(at.inbox))
		return err
	}); err != nil {
		return err
	}
	f := &former{}
	if there {
		if f, err = t.read(ctx, &q, at, first); err != nil {
			return err
		}
	}
	notes := t.out.Notes
	return t.store.Write(ctx, func(c *store.Change) error {
		t.out.Notes = slices.Clone(notes)
		return t.write(c, f, at, names, first)
	})
}

// read reads a queue, and what is known of it elsewhere.
func (t *taker) read(ctx context.Context, q *queueFiles, at place, first bool) (*former, error) {
	var k kept
	var asides []apart
	var waits []awaited.Reply
	var err error
	if first {
		if k, asides, t.out.Notes, err = readKept(t.stateDir, t.agent.Inbox, t.key); err != nil {
			return nil, err
		}
		if waits, err = store.Get(ctx, t.store.Reader, awaited.All); err != nil {
			return nil, err
		}
	}
	f := &former{kept: k, apart: asides}
	f.isAwaited = func(d files.Delivery) bool { return t.isAwaited(f, d, waits) }
	if err := q.read(f, at); err != nil {
		return nil, err
	}
	return f, t.within(t.agent.Later(), func(in *durable.Folder) error {
		f.later, _, err = readLater(in)
		return err
	})
}

// isAwaited reports whether somebody waits for the reply in an outbox record, which is the record
// of an end.
func (t *taker) isAwaited(f *former, d files.Delivery, waits []awaited.Reply) bool {
	is := slices.ContainsFunc(waits, func(r awaited.Reply) bool {
		return r.Agent == t.agent.Name && r.ID == d.ID && (r.Before || !d.AcknowledgedAt.Before(r.From().Truncate(time.Second)))
	})
	if !is {
		return false
	}
	demand, has := f.demands[d.ID]
	checked := has && !demand.Nothing || !has && (t.agent.Until != nil || f.book.Until)
	return !checked || f.book.isProven(d.DeliveryID)
}

// write puts a queue into the store.
func (t *taker) write(c *store.Change, f *former, at place, names map[string]int64, first bool) error {
	t.out.Live, t.out.Dead, t.out.IDs = 0, 0, 0
	last, err := entries.LastOf(&c.View, t.key)
	if err != nil {
		return err
	}
	if err := entries.RememberIDs(c, t.key, f.ids); err != nil {
		return err
	}
	flight, err := entries.InFlight(&c.View, t.key)
	if err != nil {
		return err
	}
	w := writer{taker: t, c: c, last: last, flying: flight != nil, first: first}
	notes, err := f.rows(t.agent, t.now, w.add)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	t.out.Notes = append(t.out.Notes, notes...)
	t.out.IDs = len(f.ids)
	for _, l := range f.lanes {
		if l.end == 0 || !first {
			continue
		}
		inbox := at.inbox
		if l.urgent {
			inbox = filepath.Join(filepath.Dir(inbox), files.Urgent.Lines)
		}
		if err := intake.Skip(c, intake.Place{Agent: t.key, Dir: at.dir, Inbox: inbox, Urgent: l.urgent, MaxEntry: at.max}, l.end, t.now); err != nil {
			return err
		}
	}
	if _, err := c.Do(`INSERT INTO takeovers (agent, inbox, at, moved) VALUES ($1, $2, $3, $4)`, t.key, at.inbox, store.Millis(t.now), !first); err != nil {
		return err
	}
	if !first {
		return nil
	}
	for name, inode := range names {
		if _, err := c.Do(`INSERT INTO takeover_files (agent, file, inode) VALUES ($1, $2, $3) ON CONFLICT (agent, file) DO UPDATE SET inode = excluded.inode`, t.key, name, inode); err != nil {
			return err
		}
	}
	return nil
}

// mostRows is how many rows are added at once.
const mostRows = 256

// writer adds rows.
type writer struct {
	*taker
	c      *store.Change
	last   int64 // the number of the agent's last entry before
	flying bool  // one of them is in flight
	first  bool
	rows   []row
}

// add adds a row, unless the store knows its entry.
func (w *writer) add(r row) error {
	if w.last > 0 {
		if r.Delivery != "" {
			if is, err := entries.IsKnown(&w.c.View, w.key, r.Delivery); is || err != nil {
				return err
			}
		}
		if !w.first && r.ID != "" {
			e, err := entries.Named(&w.c.View, w.key, r.ID)
			if e != nil && e.Seq <= w.last || err != nil {
				return err
			}
		}
		if w.flying && r.State.IsInFlight() {
			again, err := r.GiveAgain()
			if err != nil {
				return err
			}
			r.Entry = again
		}
	}
	switch {
	case !r.State.HasEnded():
		w.out.Live++
	case r.State == queue.Dead:
		w.out.Dead++
	}
	if w.rows = append(w.rows, r); len(w.rows) < mostRows {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	all := make([]entries.Adopted, len(w.rows))
	for i := range w.rows {
		all[i] = w.rows[i].Adopted
	}
	if err := entries.Adopt(w.c, w.key, all); err != nil {
		return err
	}
	for i := range w.rows {
		r, e := &w.rows[i], all[i].Entry
		if err := r.check.Keep(w.c, e.Key); err != nil {
			return err
		}
		if r.about == "" {
			continue
		}
		now, err := check.About(&w.c.View, w.agent, e)
		if err == nil {
			err = approval.Renew(w.c, w.key, e.Delivery, r.about, now)
		}
		if err != nil {
			return err
		}
	}
	w.rows = w.rows[:0]
	return nil
}

// takeLater takes the prompts whose time has not come, whoever has put them there since.
func (t *taker) takeLater(ctx context.Context) error {
	return t.within(t.agent.Later(), func(in *durable.Folder) error {
		waits, cancel := context.WithTimeout(ctx, lockWait)
		defer cancel()
		unlock, err := flock.LockIn(waits, in, laterLock)
		if err != nil {
			return err
		}
		defer func() { _ = unlock() }()
		all, names, err := readLater(in)
		if len(all) == 0 || err != nil {
			return err
		}
		k, _, _, err := readKept(t.stateDir, t.agent.Inbox, t.key)
		if err != nil {
			return err
		}
		live := 0
		if err := t.store.Write(ctx, func(c *store.Change) (err error) { live, err = t.writeLater(c, &k, all); return err }); err != nil {
			return err
		}
		t.out.Live += live
		away := t.awayFrom(t.agent.Later(), filepath.Join(Folder, laterFolder))
		for _, name := range names {
			t.owe(away.move(name))
		}
		t.owe(away.close())
		return nil
	})
}

func (t *taker) writeLater(c *store.Change, k *kept, all []later) (live int, err error) {
	for i := range all {
		r, err := all[i].row(k, t.now)
		if err != nil {
			return 0, err
		}
		a, is, err := entries.Accepted(&c.View, t.key, r.ID, r.Prompt)
		switch {
		case err != nil:
			return 0, err
		case is && !a.Differs:
			continue // it was sent
		case is:
			r.kill(queue.IDTaken, "another prompt was accepted with its id, "+r.ID, t.now)
			r.ID = ""
		default:
			live++
		}
		one := []entries.Adopted{r.Adopted}
		if err := entries.Adopt(c, t.key, one); err != nil {
			return 0, err
		}
		if err := r.check.Keep(c, one[0].Key); err != nil {
			return 0, err
		}
	}
	return live, nil
}
