package intake

import (
	"errors"
	"time"

	"heartbeat/orchestrator/store"
)

// knownFor is how long a file of several lines is known after it is gone, and mostKnown how many
// of an inbox are.
const (
	knownFor  = 7 * 24 * time.Hour
	mostKnown = 1000
)

// known is what the store knows of an inbox.
type known struct {
	last  int64             // the largest number
	files map[int64]*record // those that are there
	// inPlace is the one that stood at the inbox's name; nil: there is none.
	inPlace *record
}

const columns = `n, device, inode, moved, position, size, seen, skipping, lines, hash, began, at`

// load returns what is known of an inbox.
func load(v *store.View, agent, inbox string) (known, error) {
	k := known{files: map[int64]*record{}}
	if _, err := v.One(`SELECT n FROM intakes WHERE agent = $1 AND inbox = $2 ORDER BY n DESC LIMIT 1`, []any{agent, inbox}, &k.last); err != nil {
		return k, err
	}
	err := v.Each(`SELECT `+columns+` FROM intakes WHERE agent = $1 AND inbox = $2 AND ended = 0`, []any{agent, inbox}, func(row store.Scan) error {
		r := &record{}
		var began, at int64
		err := row(&r.n, &r.device, &r.inode, &r.moved, &r.position, &r.size, &r.seen, &r.skipping, &r.lines, &r.hash, &began, &at)
		r.began, r.at = store.Time(began), store.Time(at)
		k.files[r.n] = r
		if !r.moved {
			k.inPlace = r
		}
		return err
	})
	return k, err
}

// wasThere reports whether a file that is gone had a number.
func wasThere(v *store.View, agent, inbox string, n int64) (bool, error) {
	return v.One(`SELECT n FROM intakes WHERE agent = $1 AND inbox = $2 AND n = $3 AND ended > 0`, []any{agent, inbox, n}, &n)
}

// came returns since when the lines of other files have come before, by how many there are and
// their hash.
func came(v *store.View, agent, inbox string, but int64) (map[lineSum]time.Time, error) {
	all := map[lineSum]time.Time{}
	err := v.Each(`SELECT lines, hash, began FROM intakes WHERE agent = $1 AND inbox = $2 AND n <> $3 AND lines >= $4 ORDER BY began DESC`,
		[]any{agent, inbox, but, several}, func(row store.Scan) error {
			var s lineSum
			var began int64
			err := row(&s.lines, &s.hash, &began)
			all[s] = store.Time(began)
			return err
		})
	return all, err
}

// several is from how many lines on it is no accident that the same ones come once more.
const several = 2

type lineSum struct {
	lines int64
	hash  string
}

// errOther means that somebody else takes in the same inbox.
var errOther = errors.New("somebody else takes it in, too")

// save writes a record; was is what it is written over, nil: nothing.
func save(c *store.Change, agent, inbox string, was *record, r *record) error {
	values := []any{
		agent, inbox, r.n, r.device, r.inode, r.moved, r.position, r.size, r.seen, r.skipping, r.lines, r.hash,
		store.Millis(r.began), store.Millis(r.at),
	}
	if was == nil {
		rows, err := c.Do(`INSERT INTO intakes (agent, inbox, `+columns+`, ended) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0)
			ON CONFLICT (agent, inbox, n) DO NOTHING`, values...)
		if err == nil && rows == 0 {
			err = errOther
		}
		return err
	}
	rows, err := c.Do(`UPDATE intakes SET device = $4, inode = $5, moved = $6, position = $7, size = $8, seen = $9, skipping = $10, lines = $11, hash = $12,
		began = $13, at = $14 WHERE agent = $1 AND inbox = $2 AND n = $3 AND position = $15 AND ended = 0`, append(values, was.position)...)
	if err == nil && rows == 0 {
		err = errOther
	}
	return err
}

// end notes that a file is gone.
func end(c *store.Change, agent, inbox string, r *record, now time.Time) error {
	if r.lines < several {
		_, err := c.Do(`DELETE FROM intakes WHERE agent = $1 AND inbox = $2 AND n = $3`, agent, inbox, r.n)
		return err
	}
	_, err := c.Do(`UPDATE intakes SET ended = $4 WHERE agent = $1 AND inbox = $2 AND n = $3`, agent, inbox, r.n, store.Millis(now))
	return err
}

// forget removes what is known of files for long enough.
func forget(c *store.Change, agent, inbox string, last int64, now time.Time) error {
	_, err := c.Do(`DELETE FROM intakes WHERE agent = $1 AND inbox = $2 AND ended > 0 AND (ended < $3 OR n < $4)`,
		agent, inbox, store.Millis(now.Add(-knownFor)), last-mostKnown)
	return err
}
