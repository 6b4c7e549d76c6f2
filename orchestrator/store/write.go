package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// maxBatch is how many changes are committed together at most.
const maxBatch = 256

// Store is a fleet's store with the right to write it.
type Store struct {
	*Reader
	found  Found
	health health
	debts  *debts
	// longLog is from which size on the log is a trouble.
	longLog int64
	// ballast is how long that is, in bytes.
	ballast int64
	asked   chan *request
	ended   chan struct{} // closed when the writer has gone
	once    sync.Once

	// What follows belongs to the writer's goroutine.
	db    *sql.DB
	conn  *sql.Conn
	known map[string]*sql.Stmt
	lost  error // why nothing can be written any more
}

// Found is what a store's writer found when it opened it.
type Found struct {
	// Unclean is true if its last writer did not close it: it was killed, or the machine
	// stopped. Nothing that was answered is lost by that; Check is worth its time.
	Unclean bool
	// Moved is true if it is not the file that was last written: it was copied, or restored.
	Moved bool
	// Cloned is not nil if another machine has written it last.
	Cloned *ClonedError
}

type request struct {
	ctx  context.Context
	act  func(*Change) error
	err  error
	done chan struct{}
}

// Open opens the store to write it. Its errors are those of OpenReader.
func Open(ctx context.Context, l *Lock) (*Store, error) {
	r, err := OpenReader(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	s := &Store{Reader: r, asked: make(chan *request, maxBatch), ended: make(chan struct{}), longLog: longLog, ballast: ballastSize, debts: newDebts()}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	go s.serve()
	go s.payDebts()
	if err := s.Write(ctx, s.begin); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	_ = sweep(l.dir, time.Now()) // KeepBackups says why it cannot be done
	return s, nil
}

// OpenOrCreate opens a fleet's store to write it, after bringing its tables to this program's
// version; a fleet that has none gets one. The error is a *GoneError if it had one.
func OpenOrCreate(ctx context.Context, l *Lock) (*Store, error) {
	_, err := Migrate(ctx, l)
	if errors.Is(err, ErrNone) {
		if err = gone(l.dir); err == nil {
			err = Create(ctx, l)
		}
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, l)
}

// begin notes who has the store, and what it is like.
func (s *Store) begin(c *Change) error {
	var inode, born, clean int64
	var machine string
	if _, err := c.One(`SELECT inode, born, machine, clean FROM store`, nil, &inode, &born, &machine, &clean); err != nil {
		return err
	}
	here := machineID()
	s.found = Found{Unclean: clean == 0, Moved: inode != 0 && (inode != s.file.inode || born != s.file.born), Cloned: cloned(s.path, machine)}
	_, err := c.Do(`UPDATE store SET inode = $1, born = $2, machine = $3, clean = 0`, s.file.inode, s.file.born, here)
	return err
}

// Found is what was found when the store was opened.
func (s *Store) Found() Found { return s.found }

// Write has act change the store, and returns when what it did is durable. Changes that are
// asked for meanwhile are committed together, each alone able to fail. act must do nothing
// else, and wait for nothing; with an error nothing of it is kept.
//
// An error of act is returned as it is. ErrUnknown means that the change may be there or
// not: ask the store, or do the same again under the same keys. A *LostError means that
// nothing can be written any more.
func (s *Store) Write(ctx context.Context, act func(*Change) error) error {
	r := &request{ctx: ctx, act: act, done: make(chan struct{})}
	select {
	case s.asked <- r:
	case <-s.ended:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-r.done:
		return r.err
	case <-s.ended: // it went while this was on its way, or just after
	}
	select {
	case <-r.done:
		return r.err
	default:
		return errClosed
	}
}

// Close ends the writing; what was asked for before is done, and what is owed is tried once more.
// The fleet's lock stays with the caller.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		owed := s.closeDebts()
		err = s.Write(context.Background(), func(c *Change) error {
			if s.health.has(Damaged) {
				return nil // the next run checks it, too
			}
			_, err := c.Do(`UPDATE store SET clean = 1`)
			return err
		})
		if _, lost := errors.AsType[*LostError](err); lost {
			err = nil // it was told to each who wanted to write
		}
		s.asked <- nil
		<-s.ended
		err = errors.Join(owed, err, s.Reader.Close())
	})
	return err
}

// connect opens the connection that writes.
func (s *Store) connect() error {
	db, err := sql.Open("sqlite", dsn(s.path, "rw"))
	if err != nil {
		return fmt.Errorf("cannot open the store %q: %w", s.path, err)
	}
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	var journal string
	var synchronous int
	if err == nil {
		err = cmp.Or(conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&journal), conn.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&synchronous))
	}
	if err == nil && (journal != "wal" || synchronous != 2) {
		err = fmt.Errorf("journal_mode is %s and synchronous is %d, not wal and 2 (full)", journal, synchronous)
	}
	if err == nil {
		err = s.file.stands(s.path)
	}
	if err != nil {
		return errors.Join(opening(s.path, err), db.Close())
	}
	s.health.logIs(beside{})
	s.db, s.conn, s.known = db, conn, map[string]*sql.Stmt{}
	return nil
}

func (s *Store) disconnect() {
	for _, st := range s.known {
		_ = st.Close()
	}
	_, _ = s.conn.ExecContext(context.Background(), `ROLLBACK`)
	_ = s.conn.Close()
	_ = s.db.Close()
}

// serve commits what is asked for, as long as the store is open.
func (s *Store) serve() {
	defer close(s.ended)
	defer s.disconnect()
	for first := range s.asked {
		batch := []*request{}
		last := first == nil
		for next := first; next != nil; {
			batch = append(batch, next)
			next = nil
			if len(batch) < maxBatch {
				select {
				case next = <-s.asked:
					last = next == nil
				default:
				}
			}
		}
		s.commit(batch)
		for _, r := range batch {
			close(r.done)
		}
		if last {
			return
		}
	}
}

// commit does a batch of changes and says to each what became of it.
func (s *Store) commit(batch []*request) {
	batch = waiting(batch)
	if len(batch) == 0 {
		return
	}
	err := s.lost
	if err == nil {
		err = s.try(batch)
		s.health.learns(err, batch)
		if _, full := errors.AsType[*FullError](err); full {
			s.drop(time.Now())
		}
		if err == nil {
			err = s.keepLog()
		}
	}
	if err == nil {
		return
	}
	for _, r := range batch {
		r.err = err
	}
}

// waiting leaves out who has gone before their turn.
func waiting(batch []*request) []*request {
	var stay []*request
	for _, r := range batch {
		if r.ctx.Err() != nil {
			r.err = context.Cause(r.ctx)
			continue
		}
		stay = append(stay, r)
	}
	return stay
}

// try does a batch in one transaction. Its error is that of all of them; what one alone has
// done wrong is in its own.
func (s *Store) try(batch []*request) error {
	ctx := context.Background()
	run := func(statement string) error {
		_, err := s.conn.ExecContext(ctx, statement)
		return err
	}
	undo := func(err error) error {
		_ = run(`ROLLBACK`) // SQLite has done it itself after some errors
		return classify(s.path, err)
	}
	patience := busyFor
	if s.health.has(Locked) {
		patience = lockedFor
	}
	s.health.waitsSince(time.Now())
	err := run(fmt.Sprintf(`PRAGMA busy_timeout = %d`, patience.Milliseconds()))
	if err == nil {
		err = run(`BEGIN IMMEDIATE`)
	}
	s.health.waitsSince(time.Time{})
	if err != nil {
		return classify(s.path, err)
	}
	c := &Change{View: View{ctx: ctx, q: s.conn}, prepared: s.prepare}
	for _, r := range batch {
		r.err = nil
		if err := run(`SAVEPOINT one`); err != nil {
			return undo(err)
		}
		if r.err = r.act(c); r.err != nil {
			if isFull(r.err) {
				return undo(r.err)
			}
			r.err = classify(s.path, r.err)
			if err := run(`ROLLBACK TO one`); err != nil {
				return undo(cmp.Or(r.err, err))
			}
		}
		if err := run(`RELEASE one`); err != nil {
			return undo(err)
		}
	}
	if err := run(`COMMIT`); err != nil {
		if isFull(err) || isBusy(err) { // nothing was written (sqlite.org/rescode.html)
			return undo(err)
		}
		// The rows of a commit that failed may be there: its sync was refused, not its write.
		s.disconnect()
		again := s.connect()
		if again == nil {
			again = s.settle()
		}
		if again != nil {
			s.lost = &LostError{s.path, classify(s.path, again)}
			return errors.Join(ErrUnknown, s.lost)
		}
		return fmt.Errorf("%w: %w", ErrUnknown, classify(s.path, err))
	}
	if err := s.file.stands(s.path); err != nil {
		s.lost = err
		return err
	}
	return nil
}

// keepLog looks whether the log is still the one that the next run reads. If it is not, what
// stands in it is brought into the database, and nothing more is written. Its error is that of
// the changes that were made last.
func (s *Store) keepLog() error {
	gone := s.health.logGone(s.path)
	if gone == nil {
		return nil
	}
	gone.left = s.settle()
	s.lost = &LostError{s.path, gone}
	s.health.loses(s.lost)
	if gone.left != nil {
		return errors.Join(ErrUnknown, s.lost)
	}
	return nil
}

// settle brings what stands in the log into the database: a system that could not sync the
// log once may call it synced from then on, and what is confirmed later would stand behind it.
func (s *Store) settle() error {
	var busy, inLog, moved int
	err := s.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &inLog, &moved)
	if err == nil && busy != 0 {
		err = errors.New("its log cannot be brought into the database, because somebody reads it")
	}
	return err
}

// prepare returns a prepared statement.
func (s *Store) prepare(query string) (*sql.Stmt, error) {
	if st := s.known[query]; st != nil {
		return st, nil
	}
	st, err := s.conn.PrepareContext(context.Background(), query)
	if err == nil {
		s.known[query] = st
	}
	return st, err
}

// Dir is the state directory that the store is in.
func (s *Store) Dir() string { return filepath.Dir(s.path) }
