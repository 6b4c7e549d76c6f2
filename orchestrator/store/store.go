// Package store keeps what a fleet remembers: one SQLite database for each fleet,
// heartbeat.db in its state directory. It is the only package that opens that file.
//
// One process writes at a time, the one that holds the fleet's lock (Take): a running
// scheduler, or a command while none runs. Everybody may read (Reader). What must be true
// together is written in one transaction (Store.Write), and is durable when that returns nil.
//
// The tables are described in the steps that make them (steps/*.sql), and so by
// sqlite3 heartbeat.db .schema. Rooms own their tables' statements and are given a
// transaction; no statement stands here but for the table "store" itself. Times are
// integers, milliseconds of Unix time; no column is NULL; no column holds JSON that a
// statement looks into.
//
// It is not for network file systems, whose locks cannot be relied on (SQLite's "How To
// Corrupt An SQLite Database File", 2.1): those are refused.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Name is the name of the database in a fleet's state directory. Beside it SQLite keeps
// Name-wal and Name-shm. Nothing else may open one of the three: closing any descriptor of
// them drops the locks of the whole process (fcntl(2), F_SETLK).
const Name = "heartbeat.db"

// busyFor is how long a statement waits for somebody else's transaction: for a person's
// sqlite3, since ours has the fleet's lock.
const busyFor = 5 * time.Second

// lockedFor is how long one waits while it is known that somebody has the store locked: who
// asked for a change is told why it is not made, before they give up.
const lockedFor = 500 * time.Millisecond

// keptLog is what is left of the log's file, in bytes, when the log begins again.
const keptLog = 16 << 20

// dsn names the database for the driver. It is never created by opening it: an empty one
// would be taken for a fleet that remembers nothing.
func dsn(path, mode string, more ...string) string {
	q := url.Values{
		"mode": {mode}, "_txlock": {"immediate"}, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"},
		"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds()), "journal_mode(wal)", "synchronous(full)", fmt.Sprintf("journal_size_limit(%d)", keptLog)}, more...),
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// Reader reads a fleet's store, whoever writes it. It may be used by many at once.
type Reader struct {
	path string
	file file
	id   string
	pool *sql.DB
	// version is that of its tables.
	version int
}

// OpenReader opens the store in a fleet's state directory to read it. The error is
// ErrNone if there is none, a *VersionError if another version of this program made its
// tables, a *RefusedError if what stands at its name cannot be used.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	r, err := open(ctx, dir)
	if err != nil {
		return nil, err
	}
	if r.version != Version {
		return nil, errors.Join(&VersionError{Path: r.path, Has: r.version, Wants: Version}, r.Close())
	}
	return r, nil
}

// open opens a store of any version.
func open(ctx context.Context, dir string) (*Reader, error) {
	path := filepath.Join(dir, Name)
	was, err := look(path)
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", dsn(path, "rw", "query_only(1)"))
	if err != nil {
		return nil, fmt.Errorf("cannot open the store %q: %w", path, err)
	}
	pool.SetMaxOpenConns(4)
	pool.SetMaxIdleConns(1)
	r := &Reader{path: path, file: was, pool: pool}
	err = r.Read(ctx, func(v *View) error {
		found, err := v.One(`SELECT store_id, version FROM store`, nil, &r.id, &r.version)
		if err == nil && !found || code(err) == sqlite3.SQLITE_ERROR { // no such table
			err = &RefusedError{path, "it is not a whole store of heartbeat", ""}
		}
		return err
	})
	if err == nil {
		err = was.stands(path)
	}
	if err != nil {
		return nil, errors.Join(opening(path, err), pool.Close())
	}
	return r, nil
}

// ID returns the ID of the store in a state directory, whatever version its tables have. The
// error is ErrNone if there is none, a *RefusedError if what stands at its name cannot be used.
func ID(ctx context.Context, dir string) (string, error) {
	r, err := open(ctx, dir)
	if err != nil {
		return "", err
	}
	return r.id, r.Close()
}

// ID is the store's random name, which it keeps for good: what was written for one store
// is told from what was written for another.
func (r *Reader) ID() string { return r.id }

// Read has look see the store as it is at one instant. It must be short: what a reader sees
// is kept in the log as long as it looks. So look takes into memory what it wants, and
// prints afterwards. View must not be used afterwards.
func (r *Reader) Read(ctx context.Context, look func(*View) error) error {
	tx, err := r.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classify(r.path, err)
	}
	defer func() { _ = tx.Rollback() }()
	return classify(r.path, look(&View{ctx: ctx, q: tx}))
}

// Get is Read for what one question answers.
func Get[T any](ctx context.Context, r *Reader, ask func(*View) (T, error)) (answer T, err error) {
	err = r.Read(ctx, func(v *View) error {
		answer, err = ask(v)
		return err
	})
	return answer, err
}

// Ask is Get for the store in a state directory that the caller has not open, and opens it for
// that. Of a fleet without a store the answer is the zero value: it remembers nothing.
func Ask[T any](ctx context.Context, dir string, ask func(*View) (T, error)) (answer T, err error) {
	r, err := OpenReader(ctx, dir)
	if errors.Is(err, ErrNone) {
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	answer, err = Get(ctx, r, ask)
	return answer, errors.Join(err, r.Close())
}

// Check has SQLite look at each page of the database, which takes a second for each 100 MB
// that are not in memory, and looks whether all tables are there. Damage within a text is not
// found by it.
func (r *Reader) Check(ctx context.Context) error {
	return r.Read(ctx, func(v *View) error {
		var said string
		if _, err := v.One(`PRAGMA quick_check(1)`, nil, &said); err != nil {
			return err
		}
		if said != "ok" {
			return &DamagedError{cause{r.path, errors.New(said)}}
		}
		is, err := columns(v)
		for _, column := range made() {
			if err == nil && !slices.Contains(is, column) {
				return &DamagedError{cause{r.path, errors.New("it has no " + column)}}
			}
		}
		return err
	})
}

// columns are all that the tables of a store have.
func columns(v *View) (all []string, err error) {
	err = v.Each(`SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`, nil, func(scan Scan) error {
		all = append(all, "")
		return scan(&all[len(all)-1])
	})
	return all, err
}

// made are the columns that the steps make.
var made = sync.OnceValue(func() []string {
	var all []string
	pool, err := sql.Open("sqlite", ":memory:")
	if err == nil {
		var tx *sql.Tx
		if tx, err = pool.Begin(); err == nil {
			if err = advance(context.Background(), tx, 0); err == nil {
				all, err = columns(&View{ctx: context.Background(), q: tx})
			}
			err = errors.Join(err, tx.Rollback())
		}
		err = errors.Join(err, pool.Close())
	}
	if err != nil {
		panic(err) // they are embedded
	}
	return all
})

// Close closes it.
func (r *Reader) Close() error { return r.pool.Close() }

// Create makes a store that remembers nothing. The caller holds the fleet's lock, and has
// made sure that the fleet had none: a store that was lost is not replaced by an empty one.
// A kill leaves either none or a whole one.
func Create(ctx context.Context, l *Lock) (err error) {
	dir := l.dir
	path := filepath.Join(dir, Name)
	if exists(path) || exists(path+"-wal") {
		return &RefusedError{path, "it, or the log of one that was removed, is there already", ""}
	}
	if err := mayHold(dir); err != nil {
		return err
	}
	unfinished := path + ".new"
	if err := begin(unfinished); err != nil {
		return fmt.Errorf("cannot make the store %q: %w", path, err)
	}
	pool, err := sql.Open("sqlite", dsn(unfinished, "rw", "auto_vacuum(incremental)"))
	if err != nil {
		return fmt.Errorf("cannot make the store %q: %w", path, err)
	}
	defer func() {
		err = errors.Join(err, closeAlone(pool, unfinished))
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot make the store %q: %w", path, err), discard(unfinished))
			return
		}
		err = putInPlace(unfinished, path)
	}()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := advance(ctx, tx, 0); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO store (one, store_id, version, made, inode, born, machine, clean) VALUES (1, $1, $2, $3, 0, 0, '', 1)`,
		rand.Text(), Version, time.Now().UnixMilli()); err != nil {
		return err
	}
	return tx.Commit()
}
