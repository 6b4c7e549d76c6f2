package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// files are the steps that make the tables, in the order of their names. A step that was
// released is never changed; what is to be different is another step.
//
//go:embed steps/*.sql
var files embed.FS

// Version is that of the tables that this program reads and writes: how many steps it has.
var Version = func() int {
	all, err := files.ReadDir("steps")
	if err != nil {
		panic(err) // they are embedded
	}
	return len(all)
}()

// advance takes the steps behind a version.
func advance(ctx context.Context, tx *sql.Tx, version int) error {
	all, err := files.ReadDir("steps")
	if err != nil {
		return err
	}
	for _, step := range all[version:] {
		text, err := files.ReadFile("steps/" + step.Name())
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("step %s: %w", step.Name(), err)
		}
	}
	return nil
}

// bring brings the tables of a database to this program's version.
func bring(ctx context.Context, tx *sql.Tx) error {
	var from int
	if err := tx.QueryRowContext(ctx, `SELECT version FROM store`).Scan(&from); err != nil {
		return err
	}
	if err := advance(ctx, tx, from); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE store SET version = $1`, Version)
	return err
}

// beforeStep and stepTime are of the names of the backups that Migrate makes.
const beforeStep, stepTime = ".before-", "20060102T150405.000Z"

// Migrate brings a store's tables to this program's version, forwards only, in one
// transaction, and returns the version that it had. Before it changes anything it makes a
// backup, Name.before-VERSION-TIME. A store of a newer version is a *VersionError. Whoever is
// to write the store calls it before.
func Migrate(ctx context.Context, l *Lock) (from int, err error) {
	r, err := open(ctx, l.dir)
	if err != nil {
		return 0, err
	}
	from = r.version
	backup := ""
	switch {
	case from > Version:
		err = &VersionError{Path: r.path, Has: from, Wants: Version}
	case from < Version: // it may have been tried a moment ago
		backup = fmt.Sprintf("%s%s%d-%s", r.path, beforeStep, Version, time.Now().UTC().Format(stepTime))
		err = r.Backup(ctx, backup)
	}
	if err = errors.Join(err, r.Close()); err != nil || from == Version {
		return from, err
	}
	path := filepath.Join(l.dir, Name)
	pool, err := sql.Open("sqlite", dsn(path, "rw"))
	if err != nil {
		return from, fmt.Errorf("cannot migrate the store %q: %w", path, err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return from, classify(path, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err = bring(ctx, tx); err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, discard(backup)) // each try makes one
	}
	if err != nil {
		return from, fmt.Errorf("cannot migrate the store %q from version %d to %d: %w", path, from, Version, classify(path, err))
	}
	return from, nil
}
