package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// step is how many rows are removed in one transaction: others' wait for it.
const step = 200

// Remove removes at most so many rows by a statement, in small steps. The statement's last
// parameter is how many it may remove, at most.
func (s *Store) Remove(ctx context.Context, rows int64, statement string, args ...any) error {
	for rows > 0 {
		n, gone := min(rows, step), int64(0)
		err := s.Write(ctx, func(c *Change) (err error) {
			gone, err = c.Do(statement, append(slices.Clip(args), n)...)
			return err
		})
		if err != nil || gone < n {
			return err
		}
		rows -= n
	}
	return nil
}

// Excess returns how many rows each owner has beyond its share of most, by how many each has:
// what those with few rows leave of an equal share goes to the others.
func Excess(rows map[string]int64, most int64) map[string]int64 {
	over := map[string]int64{}
	owners := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return cmp.Compare(rows[a], rows[b]) })
	for i, owner := range owners {
		part := min(rows[owner], most/int64(len(owners)-i))
		if rows[owner] > part {
			over[owner] = rows[owner] - part
		}
		most -= part
	}
	return over
}
