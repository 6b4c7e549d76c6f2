package memo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/store"
)

// Book keeps a state in the store of a run, which alone may have it.
type Book struct {
	store *store.Store
	saved []map[string][]any // :: table, key → its row, as it is in the store
}

// Open returns what an earlier run has kept, and the book to keep it in.
func Open(ctx context.Context, s *store.Store, now time.Time) (*Book, *State, error) {
	b := &Book{store: s}
	all, err := store.Get(ctx, s.Reader, Read)
	if err != nil {
		return b, New(), fmt.Errorf("cannot read what people were told: %w", err)
	}
	b.saved = rowsOf(all)
	for _, box := range all.Boxes {
		box.Recall(now)
	}
	return b, all, nil
}

// Read returns what is kept, as it was written down.
func Read(v *store.View) (*State, error) {
	s := New()
	for _, t := range tables {
		err := v.Each("SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.name+" ORDER BY "+t.order, nil, func(scan store.Scan) error { return t.take(s, scan) })
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// rowsOf are the rows of a state, by table and key.
func rowsOf(s *State) []map[string][]any {
	all := make([]map[string][]any, len(tables))
	for i, t := range tables {
		all[i] = map[string][]any{}
		t.rows(s, func(row ...any) { all[i][t.keyOf(row)] = row })
	}
	return all
}

// Save keeps a state durably: the rows that have changed.
func (b *Book) Save(ctx context.Context, s *State) error {
	now := rowsOf(s)
	err := b.store.Write(ctx, func(c *store.Change) error {
		if b.saved == nil { // it could not be read
			return Put(c, s)
		}
		return put(c, b.saved, now)
	})
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		return err
	}
	if b.saved = now; err != nil { // which of the two is there is not known: all rows are written
		b.saved = nil
	}
	return err
}

// Put keeps a state in place of all that was kept.
func Put(c *store.Change, s *State) error {
	for _, t := range tables {
		if _, err := c.Do("DELETE FROM " + t.name); err != nil {
			return err
		}
	}
	return put(c, make([]map[string][]any, len(tables)), rowsOf(s))
}

// put changes the rows that differ.
func put(c *store.Change, before, after []map[string][]any) error {
	for i, t := range tables {
		for key, row := range before[i] {
			if after[i][key] == nil {
				if _, err := c.Do(t.deletes(), row[:t.keys]...); err != nil {
					return err
				}
			}
		}
		for key, row := range after[i] {
			if slices.Equal(before[i][key], row) {
				continue
			}
			if _, err := c.Do(t.upserts(), row...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t table) deletes() string {
	var where []string
	for i, key := range t.columns[:t.keys] {
		where = append(where, fmt.Sprintf("%s = $%d", key, i+1))
	}
	return "DELETE FROM " + t.name + " WHERE " + strings.Join(where, " AND ")
}

func (t table) upserts() string {
	var values, set []string
	for i, column := range t.columns {
		values = append(values, fmt.Sprintf("$%d", i+1))
		if i >= t.keys {
			set = append(set, column+" = excluded."+column)
		}
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(t.columns, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT (" + strings.Join(t.columns[:t.keys], ", ") + ") DO UPDATE SET " + strings.Join(set, ", ")
}
