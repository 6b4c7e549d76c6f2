// Package exports shows in each agent's directory how its entries have ended: outbox.jsonl has a
// line for each one that is done, .dead-letter.jsonl for each one that is dead. They are pictures:
// nothing is read from them but, at a start, whether the store is older than they are (Compare).
//
// A line is written after its end was committed, in the order of the ends. How far a file has come
// is kept in the store, every ten seconds, when what was written is on the disk: after a crash the
// last lines may stand there again, with the same delivery ids. Nothing waits for an export: what
// cannot be written is owed, with the reason (Owed).
//
// Each line ends with three fields: store, the store's id; n, the number of the end among those of
// its kind of this agent; mac, the HMAC-SHA256, in hex, of the file's name, a NUL byte, the agent's
// key, a NUL byte, and the line up to the comma before mac. The key is in the store, a file of mode
// 0600 that no agent can write, and so in its backups: one that is restored where nothing else is
// left has to know its lines. Whoever has the key can make a store that was restored believe that
// an entry is done, if a person says so, too; nothing else depends on it.
//
// A line stands for the agent's permanent key: in a copy of the directory, or under another
// store, it means nothing.
package exports

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// The files.
const (
	Outbox      = "outbox.jsonl"
	OlderOutbox = "outbox.1.jsonl" // the outbox before it was MaxFile long
	DeadLetters = ".dead-letter.jsonl"
)

// MaxFile is the size in bytes at which the outbox becomes the older one, and how much of the
// dead letters, the last ones, are written again when some of them are dead no more.
const MaxFile = 64 << 20

// Every is how often Settle is to be called, and when what is owed is tried again.
const Every = 10 * time.Second

// batch is how many ends are read at once; writing stops at batchSize bytes.
const (
	batch     = 16
	batchSize = 4 << 20
)

// kind is one of the two exports.
type kind struct {
	state queue.State
	name  string
}

var kinds = [...]kind{{queue.Done, Outbox}, {queue.Dead, DeadLetters}}

// Place is where an agent's exports are.
type Place struct {
	Agent string // its permanent key
	Dir   string // its directory
	Home  string // the folder of the outbox, in Dir
	Inbox string // the folder of the inbox, where the dead letters are
}

// folder opens the folder of a file. Home is made again if it is missing.
func (p Place) folder(k kind) (*durable.Folder, error) {
	path := p.Home
	if k.state == queue.Dead {
		path = p.Inbox
	}
	if path == p.Home {
		return durable.MakeBelow(p.Dir, path)
	}
	return durable.OpenBelow(p.Dir, path)
}

// Exporter writes the exports of a fleet's agents. It may be used by many at once: who waits for
// an agent's file system keeps nobody else waiting.
type Exporter struct {
	store *store.Store
	seal  sealer
	most  int64 // MaxFile
	// guard is that of the folders: see durable.Folder.
	guard func(s durable.Step, run func() error) error

	mu     sync.Mutex
	agents map[string]*agent
}

// agent is what is known of an agent's exports.
type agent struct {
	mu    sync.Mutex
	key   string
	place Place // as it was last told
	files [len(kinds)]file
}

// file is how far a file has come.
type file struct {
	now, kept progress         // kept: in the store
	gone      int64            // what now.gone has to be
	in        durable.Identity // which file it was when it was last written
	dirty     bool             // it was written since it was last synced
	isNew     bool             // and so its name has to be
	again     time.Time        // before that nothing is tried
}

// progress is a row of the table exports.
type progress struct {
	n, gone int64
	owed    int64
	why     string
}

// New returns an Exporter that goes on where the last one has come to, and makes the key of a
// store that has none.
func New(ctx context.Context, s *store.Store) (*Exporter, error) {
	x := &Exporter{store: s, seal: sealer{store: s.ID()}, most: MaxFile, agents: map[string]*agent{}}
	err := s.Write(ctx, func(c *store.Change) error {
		var key [32]byte
		_, _ = rand.Read(key[:]) // never fails (crypto/rand)
		if _, err := c.Do(`INSERT INTO export_key (one, key) VALUES (1, $1) ON CONFLICT (one) DO NOTHING`, key[:]); err != nil {
			return err
		}
		x.agents = map[string]*agent{}
		_, err := c.One(`SELECT key FROM export_key`, nil, &x.seal.key)
		if err != nil {
			return err
		}
		return c.Each(`SELECT agent, state, n, gone, owed, why FROM exports`, nil, func(row store.Scan) error {
			var key string
			var state queue.State
			var p progress
			err := row(&key, &state, &p.n, &p.gone, &p.owed, &p.why)
			f := x.of(key).file(state)
			f.now, f.kept, f.gone = p, p, p.gone
			return err
		})
	})
	return x, err
}

func (x *Exporter) of(key string) *agent {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.agents[key] == nil {
		x.agents[key] = &agent{key: key}
	}
	return x.agents[key]
}

func (a *agent) file(s queue.State) *file {
	return &a.files[slices.IndexFunc(kinds[:], func(k kind) bool { return k.state == s })]
}

// Export writes the lines of an agent's ends that were committed. The error is the store's; what a
// file refuses is owed.
func (x *Exporter) Export(ctx context.Context, at Place, now time.Time) error {
	a := x.of(at.Agent)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.place = at
	return x.export(ctx, a, now)
}

func (x *Exporter) export(ctx context.Context, a *agent, now time.Time) error {
	for i, k := range kinds {
		f := &a.files[i]
		for !now.Before(f.again) {
			ends, counts, err := x.ends(ctx, a.key, k, f.now.n)
			if err != nil {
				return err
			}
			if f.gone = counts.Gone; k.state == queue.Done {
				f.gone = 0
			}
			if len(ends) == 0 {
				f.pay() // what was owed is pruned
				break
			}
			last, data, err := x.lines(k, ends)
			if err != nil {
				return err
			}
			if err := x.extend(a.place, k, f, data); err != nil {
				f.owe(err, now)
				break
			}
			f.now.n = last
			f.pay()
			if len(ends) < batch && last == ends[len(ends)-1].N {
				break
			}
		}
	}
	return nil
}

// owe notes that a file cannot be written.
func (f *file) owe(err error, now time.Time) {
	if f.now.owed == 0 {
		f.now.owed = store.Millis(now)
	}
	f.now.why, f.again = err.Error(), now.Add(Every)
}

// pay notes that lines can be written. What is to be written whole may be owed still.
func (f *file) pay() {
	if f.gone == f.now.gone {
		f.now.owed, f.now.why, f.again = 0, "", time.Time{}
	}
}

func (x *Exporter) ends(ctx context.Context, key string, k kind, after int64) (ends []entries.Ended, n entries.Counts, err error) {
	err = x.store.Read(ctx, func(v *store.View) (err error) {
		if n, err = entries.CountsOf(v, key); err == nil {
			ends, err = entries.Ends(v, key, k.state, after, batch)
		}
		return err
	})
	return ends, n, err
}

// lines returns the lines of the first ends, and the number of the last one of them.
func (x *Exporter) lines(k kind, ends []entries.Ended) (last int64, data []byte, err error) {
	for i := range ends {
		if len(data) >= batchSize {
			break
		}
		raw, err := x.seal.line(k, &ends[i])
		if err != nil {
			return 0, nil, err
		}
		last, data = ends[i].N, append(data, raw...)
	}
	return last, data, nil
}

// extend appends lines to a file, in whose place others may have put anything.
func (x *Exporter) extend(at Place, k kind, f *file, data []byte) (err error) {
	in, err := at.folder(k)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	in.Guard = x.guard
	if info, err := in.Stat(k.name); err == nil && k.state == queue.Done && info.Mode().IsRegular() && info.Size() >= x.most {
		err := x.syncIn(in, k, f)
		if err == nil {
			err = in.Rename(k.name, OlderOutbox)
		}
		if err != nil {
			return err
		}
	}
	var to *os.File
	err = in.Do(durable.Step{Verb: durable.Create, Name: k.name}, func() (err error) {
		to, err = in.OpenFile(k.name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	info, err := to.Stat()
	if err != nil {
		return err
	}
	f.in, f.dirty, f.isNew = durable.IdentityOf(info), true, f.isNew || info.Size() == 0
	if err := in.Extend(to, k.name, data); err != nil {
		return fmt.Errorf("cannot extend %q: %w", to.Name(), err)
	}
	return nil
}

// Settle keeps in the store how far the exports have come, when that is on the disk, tries again
// what is owed, and takes out of .dead-letter.jsonl what is dead no more. The error is the
// store's. It is to be called Every so often, and at the end, by one at a time.
func (x *Exporter) Settle(ctx context.Context, now time.Time) error {
	x.mu.Lock()
	all := slices.Collect(maps.Values(x.agents))
	x.mu.Unlock()
	gone, err := store.Get(ctx, x.store.Reader, entries.Gone)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(all, 200) {
		var settled []reached
		for _, a := range part {
			got, err := x.settle(ctx, a, gone[a.key], now)
			if err != nil {
				return err
			}
			settled = append(settled, got...)
		}
		if err := x.keep(ctx, settled); err != nil {
			return err
		}
	}
	return nil
}

// reached is a file with how far it has come.
type reached struct {
	agent *agent
	kind  int
	progress
}

// settle returns what of an agent is to be kept. gone is how many of its dead entries are dead no
// more.
func (x *Exporter) settle(ctx context.Context, a *agent, gone int64, now time.Time) (changed []reached, err error) {
	if !a.mu.TryLock() {
		return nil, nil // somebody waits for its files
	}
	defer a.mu.Unlock()
	if a.place.Agent == "" {
		return nil, nil // nobody has said where it is
	}
	if slices.ContainsFunc(a.files[:], func(f file) bool { return f.now.owed != 0 }) {
		if err := x.export(ctx, a, now); err != nil {
			return nil, err
		}
	}
	for i, k := range kinds {
		f := &a.files[i]
		if k.state == queue.Dead {
			f.gone = max(f.gone, gone) // that of Export may be newer
		}
		if f.gone != f.now.gone && !now.Before(f.again) {
			if err := x.rewrite(ctx, a, k, f, now); err != nil {
				return changed, err
			}
		}
		if err := x.sync(a.place, k, f); err != nil {
			f.owe(err, now)
		}
		if f.now != f.kept {
			changed = append(changed, reached{a, i, f.now})
		}
	}
	return changed, nil
}

// keep writes into the store what has changed.
func (x *Exporter) keep(ctx context.Context, changed []reached) error {
	if len(changed) == 0 {
		return nil
	}
	err := x.store.Write(ctx, func(c *store.Change) error {
		for _, r := range changed {
			if err := keep(c, r.agent.key, kinds[r.kind], r.progress); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range changed {
		r.agent.mu.Lock()
		r.agent.files[r.kind].kept = r.progress
		r.agent.mu.Unlock()
	}
	return nil
}

func keep(c *store.Change, key string, k kind, p progress) error {
	_, err := c.Do(`INSERT INTO exports (agent, state, n, gone, owed, why) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (agent, state) DO UPDATE SET n = excluded.n, gone = excluded.gone, owed = excluded.owed, why = excluded.why`,
		key, string(k.state), p.n, p.gone, p.owed, p.why)
	return err
}

// sync brings to the disk what was written into a file.
func (x *Exporter) sync(at Place, k kind, f *file) (err error) {
	if !f.dirty {
		return nil
	}
	in, err := at.folder(k)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotFolder) {
		f.dirty, f.isNew = false, false
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	in.Guard = x.guard
	return x.syncIn(in, k, f)
}

// syncIn is sync in a folder, if the file still has its name: what somebody has moved is his. A
// sync that failed is never repeated: what it was about is written again.
func (x *Exporter) syncIn(in *durable.Folder, k kind, f *file) (err error) {
	if !f.dirty {
		return nil
	}
	isNew := f.isNew
	f.dirty, f.isNew = false, false
	defer func() {
		if err != nil {
			f.now.n = f.kept.n
		}
	}()
	is, err := in.OpenFile(k.name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, is.Close()) }()
	info, err := is.Stat()
	if err != nil || f.in != durable.IdentityOf(info) {
		return err
	}
	if err := in.SyncData(is, k.name); err != nil || !isNew {
		return err
	}
	return in.Sync()
}

// rewrite writes all dead letters again, in their order: some of them are dead no more, because
// they were queued again or purged. The error is the store's.
func (x *Exporter) rewrite(ctx context.Context, a *agent, k kind, f *file, now time.Time) error {
	var n entries.Counts
	var after int64
	err := x.store.Read(ctx, func(v *store.View) (err error) {
		if n, err = entries.CountsOf(v, a.key); err == nil {
			after, err = x.before(v, a.key)
		}
		return err
	})
	if err != nil {
		return err
	}
	var broken error // the store's
	written, err := x.replace(a.place, k, func(w io.Writer) error {
		for after < n.Dead && broken == nil {
			var ends []entries.Ended
			var data []byte
			if ends, _, broken = x.ends(ctx, a.key, k, after); len(ends) == 0 {
				break
			}
			if after, data, broken = x.lines(k, ends); broken == nil {
				if _, err := w.Write(data); err != nil {
					return err
				}
			}
		}
		return broken
	})
	switch f.gone = n.Gone; {
	case broken != nil:
		return broken
	case err != nil:
		f.owe(err, now)
		return nil
	case written:
		f.now.n, f.dirty, f.isNew = max(f.now.n, after), false, false
	}
	f.now.gone = n.Gone // without a file it begins again with the next one
	f.pay()
	return nil
}

// replace has write write a new file in place of one, if there is one.
func (x *Exporter) replace(at Place, k kind, write func(io.Writer) error) (written bool, err error) {
	in, err := at.folder(k)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	in.Guard = x.guard
	info, err := in.Stat(k.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("cannot write %q: %w", filepath.Join(in.Path(), k.name), durable.ErrNotRegular)
	}
	if err := in.SweepOf(k.name); err != nil {
		return false, err
	}
	if err := in.ReplaceFunc(k.name, true, write); err != nil {
		return false, err
	}
	return true, in.Sync()
}

// before returns the number before the first of the last dead letters that a file is to hold.
func (x *Exporter) before(v *store.View, key string) (after int64, err error) {
	var size int64
	enough := errors.New("the others are too many")
	err = v.Each(`SELECT e.n, octet_length(t.prompt) + octet_length(t.line) FROM entries e, texts t
		WHERE e.agent = $1 AND e.state = 'dead' AND e.n > 0 AND t.agent = e.agent AND t.seq = e.seq ORDER BY e.n DESC`, []any{key}, func(row store.Scan) error {
		var length int64
		if err := row(&after, &length); err != nil {
			return err
		}
		if size += length; size > x.most {
			return enough
		}
		after--
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return after, err
}

// Debt is a file whose lines cannot be written.
type Debt struct {
	Agent string // its permanent key
	File  string
	Why   string
	Since time.Time
}

// Owed returns the files whose lines cannot be written, as it was when Settle was last called.
func Owed(v *store.View) (all []Debt, err error) {
	err = v.Each(`SELECT agent, state, owed, why FROM exports WHERE owed > 0 ORDER BY agent, state`, nil, func(row store.Scan) error {
		var d Debt
		var state queue.State
		var since int64
		err := row(&d.Agent, &state, &since, &d.Why)
		d.Since = store.Time(since)
		for _, k := range kinds {
			if k.state == state {
				d.File = k.name
			}
		}
		all = append(all, d)
		return err
	})
	return all, err
}
