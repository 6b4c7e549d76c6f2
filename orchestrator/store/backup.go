package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// Backup writes the store as it is now into a new file, which then is a whole store, while
// others write on. A copy of the file by other means is not whole as long as the store is
// open. An existing file is not replaced.
func (r *Reader) Backup(ctx context.Context, to string) error {
	if exists(to) {
		return fmt.Errorf("cannot write the backup %q: it exists already", to)
	}
	unfinished := to + ".new"
	err := begin(unfinished)
	if err == nil {
		var conn *sql.Conn
		if conn, err = r.pool.Conn(ctx); err == nil {
			_, err = conn.ExecContext(ctx, `PRAGMA query_only = 0`)
			if err == nil {
				_, err = conn.ExecContext(ctx, `VACUUM INTO $1`, unfinished)
			}
			if isFull(err) { // it is not the store's disk
				err = fmt.Errorf("no space is left on its disk (df -h %s)", settings.Quote(filepath.Dir(to)))
			}
			_, again := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA query_only = 1`)
			err = errors.Join(classify(r.path, err), again, conn.Close())
		}
	}
	if err == nil {
		err = putInPlace(unfinished, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the backup %q: %w", to, err), discard(unfinished))
	}
	return nil
}

// Backups is the folder in a state directory that KeepBackups writes into.
const Backups = "backups"

// How many backups are kept, of those that are made daily and of those that Migrate makes, how
// old the newest is at most, when one that failed is tried again, and how long nobody has
// written into one that nobody finishes.
const (
	kept   = 3
	daily  = 24 * time.Hour
	hourly = time.Hour
	idle   = time.Hour
)

// backupPrefix begins the names of backups, before the time.
const backupPrefix, backupTime = "heartbeat-", "20060102T150405Z"

// NewBackup is a name for a backup in a fleet's state directory; its folder is made.
func NewBackup(stateDir string, now time.Time) (string, error) {
	dir := filepath.Join(stateDir, Backups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make a folder for backups: %w", err)
	}
	return filepath.Join(dir, backupPrefix+now.UTC().Format(backupTime)+".db"), nil
}

// KeepBackups writes a backup into the state directory if the newest is a day old, or has a
// time that is still to come, and removes all but the newest three. A store that is damaged
// (Verify) replaces none of them. It reports when to call it again: soon, if it failed.
func (s *Store) KeepBackups(ctx context.Context, now time.Time) (after time.Duration, err error) {
	swept := sweep(s.Dir(), now)
	defer func() { err = errors.Join(err, swept) }()
	to, err := NewBackup(s.Dir(), now)
	if err != nil {
		return hourly, err
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(to), backupPrefix+"*.db"))
	if err != nil {
		return hourly, err
	}
	slices.Sort(names)
	if len(names) > 0 {
		last, err := time.Parse(backupPrefix+backupTime+".db", filepath.Base(names[len(names)-1]))
		if age := now.Sub(last); err == nil && age >= 0 && age < daily {
			return daily - age, nil
		}
	}
	err = s.Verify(ctx)
	if err == nil {
		err = s.Backup(ctx, to)
	}
	if err != nil {
		return hourly, err
	}
	for _, old := range names[:max(0, len(names)+1-kept)] {
		err = errors.Join(err, discard(old))
	}
	return daily, err
}

// sweep removes from a state directory what killed processes have left of backups that they did
// not finish, and all but the newest three of those that Migrate made. The caller holds the
// fleet's lock. Commands write backups without it, so one that is written into is left alone.
func sweep(dir string, now time.Time) error {
	path := filepath.Join(dir, Name)
	unfinished, err := filepath.Glob(filepath.Join(dir, Backups, backupPrefix+"*.db.new*"))
	unfinished = slices.DeleteFunc(unfinished, func(name string) bool {
		info, err := os.Lstat(name)
		return err == nil && now.Sub(info.ModTime()).Abs() < idle
	})
	copies, failed := filepath.Glob(path + beforeStep + "*")
	err = errors.Join(err, failed)
	var whole []string
	for _, name := range copies {
		if _, err := time.Parse(stepTime, timeOf(name)); err == nil {
			whole = append(whole, name)
		} else if strings.Contains(timeOf(name), "Z.new") {
			unfinished = append(unfinished, name)
		}
	}
	slices.SortFunc(whole, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })
	for _, name := range append(unfinished, whole[:max(0, len(whole)-kept)]...) {
		err = errors.Join(err, discard(name))
	}
	return err
}

// timeOf is what follows the version in the name of a backup that Migrate makes.
func timeOf(name string) string {
	_, after, _ := strings.Cut(filepath.Base(name), beforeStep)
	_, when, _ := strings.Cut(after, "-")
	return when
}

// Restore puts a backup in the place of a fleet's store. What was there stays beside it,
// under the name that is returned, "" if nothing was. The backup is checked before anything
// is changed, and stays as it is. The caller holds the fleet's lock.
//
// carry changes what is put there, whose tables have this program's version by then, by what
// the store in its place says: some things no backup may bring back. was is nil if there is
// none, or it cannot be read.
func Restore(ctx context.Context, l *Lock, backup string, carry func(was *View, c *Change) error) (before string, err error) {
	path := filepath.Join(l.dir, Name)
	if err := mayHold(l.dir); err != nil {
		return "", err
	}
	if exists(path + leaving) { // the last one was killed
		if _, err := leave(path); err != nil {
			return "", fmt.Errorf("cannot put the former store aside: %w", err)
		}
	}
	unfinished := path + ".new"
	if err := discard(unfinished); err != nil {
		return "", fmt.Errorf("cannot restore %q: %w", backup, err)
	}
	err = copyWhole(ctx, backup, unfinished)
	if err == nil {
		err = carryOver(ctx, l, unfinished, carry)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot restore %q: %w", backup, err), discard(unfinished))
	}
	if exists(path) {
		err = os.Rename(path, path+leaving)
	}
	if err == nil {
		before, err = leave(path)
	}
	if err != nil {
		return before, fmt.Errorf("cannot put the present store aside: %w", err)
	}
	return before, putInPlace(unfinished, path)
}

// Difference is how two stores differ in a table.
type Difference struct {
	Table string `json:"table"`
	// Gone counts rows that only the former has, Back those that only the latter has: a row
	// that was changed counts as both.
	Gone int `json:"gone"`
	Back int `json:"back"`
}

// Differences compares what stores of this program's version remember, without what they say
// of themselves. Tables without a difference are left out.
func Differences(was, is *View) (all []Difference, err error) {
	var tables []string
	err = is.Each(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'store' ORDER BY name`, nil, func(scan Scan) error {
		tables = append(tables, "")
		return scan(&tables[len(tables)-1])
	})
	for _, table := range tables {
		left := map[uint64]int{} // rows of the former, by their hashes, that the latter has not
		d := Difference{Table: table}
		if err == nil {
			err = was.eachRow(table, func(row uint64) { left[row]++; d.Gone++ })
		}
		if err == nil {
			err = is.eachRow(table, func(row uint64) {
				if left[row] > 0 {
					left[row]--
					d.Gone--
				} else {
					d.Back++
				}
			})
		}
		if d.Gone+d.Back > 0 {
			all = append(all, d)
		}
	}
	return all, err
}

// eachRow gives the hash of each row of a table to take.
func (v *View) eachRow(table string, take func(row uint64)) error {
	var columns []string
	err := v.Each(`SELECT name FROM pragma_table_info($1)`, []any{table}, func(scan Scan) error {
		var name string
		err := scan(&name)
		columns = append(columns, `quote("`+name+`")`)
		return err
	})
	if err != nil {
		return err
	}
	return v.Each(`SELECT `+strings.Join(columns, ` || ',' || `)+` FROM "`+table+`"`, nil, func(scan Scan) error {
		var row sql.RawBytes
		err := scan(&row)
		take(maphash.Bytes(rowSeed, row))
		return err
	})
}

var rowSeed = maphash.MakeSeed()

// carryOver has carry change a database that nobody has open.
func carryOver(ctx context.Context, l *Lock, unfinished string, carry func(was *View, c *Change) error) (err error) {
	pool, err := sql.Open("sqlite", dsn(unfinished, "rw"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAlone(pool, unfinished)) }()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := bring(ctx, tx); err != nil {
		return err
	}
	c := &Change{View: View{ctx: ctx, q: tx}, prepared: func(query string) (*sql.Stmt, error) { return tx.PrepareContext(ctx, query) }}
	read := func(was *View) error { return carry(was, c) }
	if was := present(ctx, l); was != nil {
		err = errors.Join(was.Read(ctx, read), was.Close())
	} else {
		err = read(nil)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// present opens the store that a backup takes the place of; nil: there is none that can be read.
func present(ctx context.Context, l *Lock) *Reader {
	if _, err := Migrate(ctx, l); err != nil {
		return nil
	}
	r, err := OpenReader(ctx, l.dir)
	if err != nil {
		return nil
	}
	if err := r.Check(ctx); err != nil {
		_ = r.Close() // it was only read
		return nil
	}
	return r
}

// leaving ends the name of a store that is being put aside: it is there no more, and its log
// may be. The database goes first: without its log it is an older one, and a log without its
// database would be applied to the next.
const leaving = ".before-restore"

// leave gives a store that is leaving its last name, and returns it, with its log; "": none is.
// A log whose database was removed by others gets a name of its own.
func leave(path string) (before string, err error) {
	n := 1
	name := func() string { return fmt.Sprintf("%s%s-%d", path, leaving, n) }
	for ; exists(name()); n++ {
	}
	if exists(path + "-wal") {
		if err := os.Rename(path+"-wal", name()+"-wal"); err != nil {
			return "", err
		}
	}
	if exists(path + leaving) {
		before = name()
		if err := os.Rename(path+leaving, before); err != nil {
			return "", err
		}
	}
	return before, discard(path)
}

// Exists reports whether a fleet has a store: a run has begun, or a command had to write.
func Exists(stateDir string) bool { return exists(filepath.Join(stateDir, Name)) }

// gone is a *GoneError if a directory without a store had one, or nil: a fleet that forgets
// what it knew begins to run what was paused, and fires what has fired.
func gone(dir string) error {
	path := filepath.Join(dir, Name)
	backups, err := filepath.Glob(filepath.Join(dir, Backups, backupPrefix+"*.db"))
	traces := slices.Clone(backups)
	for _, pattern := range []string{path + "-wal", path + ".before-*", filepath.Join(dir, Former)} {
		some, e := filepath.Glob(pattern)
		traces, err = append(traces, some...), errors.Join(err, e)
	}
	if len(traces) == 0 {
		return err
	}
	e := &GoneError{path: path}
	if len(backups) > 0 {
		e.backup = slices.Max(backups)
	}
	return e
}

// Former is the folder in a state directory with what earlier versions kept there in files,
// and is in the store now.
const Former = "before-store"

// exists reports whether something stands at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// copyWhole copies a backup and checks the copy. A log beside it belongs to it: that of a
// store which was put aside after a kill has what was done last.
func copyWhole(ctx context.Context, backup, to string) (err error) {
	if err := copyFile(backup, to); err != nil {
		return err
	}
	if exists(backup + "-wal") {
		if err := copyFile(backup+"-wal", to+"-wal"); err != nil {
			return err
		}
	}
	pool, err := sql.Open("sqlite", dsn(to, "rw"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAlone(pool, to)) }()
	var said string
	var version int
	if err := pool.QueryRowContext(ctx, `SELECT version FROM store`).Scan(&version); err != nil {
		return fmt.Errorf("it is not a store of heartbeat: %w", err)
	}
	if version > Version {
		return &VersionError{Path: backup, Has: version, Wants: Version}
	}
	if err := pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil || said != "ok" {
		return errors.Join(&DamagedError{cause{backup, errors.New(said)}}, err)
	}
	return nil
}

// closeAlone closes a database that nobody else has open. Whoever closes it last brings its log
// into it, and SQLite does not say if that fails.
func closeAlone(pool *sql.DB, path string) error {
	err := pool.Close()
	if err == nil && exists(path+"-wal") {
		err = errors.New("its log cannot be brought into it")
	}
	return err
}

// copyFile copies a file that nobody writes meanwhile.
func copyFile(from, to string) error {
	in, err := durable.OpenFile(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := durable.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
