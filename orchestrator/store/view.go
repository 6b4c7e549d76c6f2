package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// View is the store at one instant.
type View struct {
	ctx context.Context
	q   interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

// Scan takes the columns of a row, in the order of the question.
type Scan func(columns ...any) error

// Each asks for rows and gives them to take, one after the other. take must not ask the
// store itself.
func (v *View) Each(query string, args []any, take func(Scan) error) (err error) {
	rows, err := v.q.QueryContext(v.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := take(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// One asks for one row, and reports whether there is one; the columns are untouched if not.
func (v *View) One(query string, args []any, columns ...any) (found bool, err error) {
	err = v.Each(query, args, func(scan Scan) error {
		if found {
			return nil
		}
		found = true
		return scan(columns...)
	})
	return found, err
}

// Change is a transaction: what it has seen stays true until it is committed, and all that
// it does is committed together, or nothing.
type Change struct {
	View
	prepared func(query string) (*sql.Stmt, error)
}

// Do changes rows, and returns how many.
func (c *Change) Do(query string, args ...any) (rows int64, err error) {
	s, err := c.prepared(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(c.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Millis is how the store keeps a time; the zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time is the time of what Millis has returned.
func Time(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}
