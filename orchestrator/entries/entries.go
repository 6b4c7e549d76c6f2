// Package entries keeps the queues of a fleet's agents in its store: each prompt is a row, each
// step of it one transaction. What a step may be is package queue's to say; here it is read,
// taken and written, under a condition that the row is still as it was read.
//
// The tables are described in schema.sql. Texts and replies stand in tables of their own: a row
// that changes is written whole each time.
package entries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// Outcomes that callers act on.
var (
	// ErrEmpty means that nothing is queued.
	ErrEmpty = errors.New("nothing is queued")
	// ErrInFlight means that another entry is in flight.
	ErrInFlight = errors.New("an entry is in flight")
	// ErrNotFound means that no entry has that name.
	ErrNotFound = errors.New("no entry has this id")
	// ErrFull means that a queue has no room for a letter: see queue.Letter.Most.
	ErrFull = errors.New("the queue is full")
	// ErrTooLarge means that a prompt is longer than max-entry.
	ErrTooLarge = errors.New("the entry is too large")
	// ErrLate means that the agent is bound to another scheduler since: nothing was moved.
	ErrLate = errors.New("the agent is bound to another scheduler")
	// ErrNoRoom means that queue.MostSuspended entries wait for a person already.
	ErrNoRoom = fmt.Errorf("%d entries wait for a person, and no more may", queue.MostSuspended)
	// ErrDamaged means that a text is not what was queued.
	ErrDamaged = errors.New("its text in the store is damaged")
)

// Bind gives an agent's queue to this scheduler and returns the number of the binding, which
// each later transaction names. It makes the queue if the agent has none.
func Bind(c *store.Change, agent string) (binding int64, err error) {
	if err := begin(c, agent); err != nil {
		return 0, err
	}
	_, err = c.One(`UPDATE queues SET binding = binding + 1 WHERE agent = $1 RETURNING binding`, []any{agent}, &binding)
	return binding, err
}

// Hold is the first statement of a transaction that moves entries of an agent: the error is
// ErrLate if the binding is another one.
func Hold(c *store.Change, agent string, binding int64) error {
	rows, err := c.Do(`UPDATE queues SET binding = binding WHERE agent = $1 AND binding = $2`, agent, binding)
	if err == nil && rows == 0 {
		err = fmt.Errorf("cannot change the queue of %s: %w", agent, ErrLate)
	}
	return err
}

// begin makes an agent's queue if it has none.
func begin(c *store.Change, agent string) error {
	_, err := c.Do(`INSERT INTO queues (agent, binding, seq, done, dead, gone) VALUES ($1, 0, 0, 0, 0, 0) ON CONFLICT (agent) DO NOTHING`, agent)
	return err
}

// NextNumber returns the next number of an agent's queue: of an entry, or of a place behind all others
// of its lane.
func NextNumber(c *store.Change, agent string) (seq int64, err error) { return places(c, agent, 1) }

// places takes the next n numbers of an agent's queue, and returns the last of them.
func places(c *store.Change, agent string, n int) (last int64, err error) {
	const next = `UPDATE queues SET seq = seq + $1 WHERE agent = $2 RETURNING seq`
	found, err := c.One(next, []any{n, agent}, &last)
	if err != nil || found {
		return last, err
	}
	if err := begin(c, agent); err != nil {
		return 0, err
	}
	_, err = c.One(next, []any{n, agent}, &last)
	return last, err
}

// Added is what became of a letter.
type Added struct {
	queue.Key
	Delivery string
	// Duplicate is true if its id was accepted before; Key and Delivery are those of that entry,
	// or zero where it is not remembered any more.
	Duplicate bool
	// Differs is true of a duplicate whose prompt is another one, as far as it is still there.
	Differs bool
}

// Add queues letters in their order. The error, which is about the first letter that cannot be
// queued, means that none was: it matches ErrFull, or is about the letter itself. maxEntry is
// the longest line, in bytes; 0 means queue.MaxLine.
func Add(c *store.Change, agent string, maxEntry int64, now time.Time, letters ...queue.Letter) ([]Added, error) {
	added := make([]Added, len(letters))
	for i, l := range letters {
		var err error
		if added[i], err = add(c, agent, maxEntry, now, l); err != nil {
			return nil, err
		}
	}
	return added, nil
}

func add(c *store.Change, agent string, maxEntry int64, now time.Time, l queue.Letter) (Added, error) {
	if err := l.Validate(); err != nil {
		return Added{}, err
	}
	l.Prompt = strings.ToValidUTF8(l.Prompt, "\uFFFD")
	raw, err := envelope(l)
	if err != nil {
		return Added{}, err
	}
	if before, is, err := Accepted(&c.View, agent, l.ID, l.Prompt); is || err != nil {
		return before, err
	}
	if maxEntry <= 0 {
		maxEntry = queue.MaxLine
	}
	if int64(len(raw)) > maxEntry {
		return Added{}, fmt.Errorf("cannot queue the entry: %w (%d bytes as a line, the limit is %d)", ErrTooLarge, len(raw), maxEntry)
	}
	if err := room(&c.View, agent, l.Most); err != nil {
		return Added{}, err
	}
	e := queue.Entry{EntryID: line.Sum(raw), ID: l.ID, Source: l.Source, NotBefore: l.NotBefore, Accepted: now, State: queue.Queued, Lane: queue.Normal}
	e.Checked = l.Checked
	if !l.NotBefore.IsZero() {
		e.State = queue.Later
	}
	if l.Urgent {
		e.Lane = queue.Urgent
	}
	e, err = Insert(c, agent, e, queue.Text{Prompt: l.Prompt})
	return Added{Key: e.Key, Delivery: e.Delivery}, err
}

// envelope is the line that a letter would be in an inbox, without its newline.
func envelope(l queue.Letter) ([]byte, error) {
	raw, err := line.Encode(line.Envelope{ID: l.ID, Source: l.Source, Checked: l.Checked, Prompt: l.Prompt})
	return raw[:max(0, len(raw)-1)], err
}

// New is an entry that comes into a queue, with what it says.
type New struct {
	queue.Entry
	queue.Text
}

// Insert queues an entry with a new number and, where it has none, a delivery id; its Key is set.
// Its id is remembered. It is for entries that no letter makes: lines of an inbox, dead ones
// among them, and those of an adopted queue.
func Insert(c *store.Change, agent string, e queue.Entry, t queue.Text) (queue.Entry, error) {
	one := []New{{e, t}}
	err := InsertAll(c, agent, one)
	return one[0].Entry, err
}

// InsertAll is Insert for many, in their order.
func InsertAll(c *store.Change, agent string, all []New) error {
	if len(all) == 0 {
		return nil
	}
	last, err := places(c, agent, len(all))
	if err != nil {
		return err
	}
	var storeID string
	if _, err := c.One(`SELECT store_id FROM store`, nil, &storeID); err != nil {
		return err
	}
	for i := range all {
		e := &all[i].Entry
		e.Key = queue.Key{Agent: agent, Seq: last - int64(len(all)-1-i)}
		if e.Place == 0 {
			e.Place = e.Seq
		}
		if e.Delivery == "" {
			e.Delivery = delivery(storeID, e.Key)
		}
	}
	for i := range all {
		if err := insert(c, &all[i].Entry, all[i].Text); err != nil {
			return err
		}
	}
	return nil
}

// insert adds the rows of an entry that has its key. Several rows in one statement take longer:
// the driver looks each parameter's name up in a list of them all.
func insert(c *store.Change, e *queue.Entry, t queue.Text) error {
	if _, err := c.Do(`INSERT INTO entries (`+names+`, n) VALUES (`+numbers+`, 0)`, values(e)...); err != nil {
		return err
	}
	if err := number(c, "", *e, 0); err != nil {
		return err
	}
	_, err := c.Do(`INSERT INTO texts (agent, seq, prompt, hash, line, length) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Agent, e.Seq, t.Prompt, sum(t.Prompt), append([]byte{}, t.Line...), t.Length)
	if err != nil || e.ID == "" {
		return err
	}
	_, err = c.Do(`INSERT INTO ids (agent, id, seq, at) VALUES ($1, $2, $3, $4) ON CONFLICT (agent, id) DO UPDATE SET seq = excluded.seq, at = excluded.at`,
		e.Agent, e.ID, e.Seq, store.Millis(e.Accepted))
	return err
}

// delivery makes the delivery id of a key: it is that of no entry of another store.
func delivery(storeID string, k queue.Key) string {
	hash := sha256.Sum256([]byte(storeID + "\x00" + k.Agent + "\x00" + strconv.FormatInt(k.Seq, 10)))
	return hex.EncodeToString(hash[:6])
}

func sum(s string) string {
	hash := sha256.Sum256([]byte(s))
	return hex.EncodeToString(hash[:])
}

// Accepted reports whether an agent has accepted an id before, as far as ids are remembered, and
// what is known of that entry.
func Accepted(v *store.View, agent, id, prompt string) (Added, bool, error) {
	if id == "" {
		return Added{}, false, nil
	}
	k := queue.Key{Agent: agent}
	is, err := v.One(`SELECT seq FROM ids WHERE agent = $1 AND id = $2`, []any{agent, id}, &k.Seq)
	if !is || err != nil {
		return Added{}, false, err
	}
	a := Added{Duplicate: true}
	var hash string
	there, err := v.One(`SELECT e.delivery, t.hash FROM entries e, texts t WHERE e.agent = $1 AND e.seq = $2 AND t.agent = e.agent AND t.seq = e.seq`,
		[]any{k.Agent, k.Seq}, &a.Delivery, &hash)
	if there {
		a.Key, a.Differs = k, hash != sum(prompt)
	}
	return a, true, err
}

// IsAccepted reports whether an agent has accepted an id, as far as ids are remembered.
func IsAccepted(v *store.View, agent, id string) (bool, error) {
	_, is, err := Accepted(v, agent, id, "")
	return is, err
}

// room returns ErrFull if most entries are queued.
func room(v *store.View, agent string, most int) error {
	if most == 0 {
		return nil
	}
	n := 0
	if most > 0 {
		if _, err := v.One(`SELECT count(*) FROM (SELECT 1 FROM entries WHERE agent = $1 AND state = 'queued' LIMIT $2) AS first`, []any{agent, most}, &n); err != nil {
			return err
		}
	}
	if most < 0 || n >= most {
		return fmt.Errorf("cannot queue the entry: %w: %d of %d", ErrFull, n, max(0, most))
	}
	return nil
}

// ForgetIDs forgets ids that are older than seven days and beyond the last 100,000 of their agent,
// but for those of entries that have not ended: at most as many as said. It returns how many.
func ForgetIDs(c *store.Change, now time.Time, most int64) (gone int64, err error) {
	beyond := map[string]int64{}
	err = c.Each(`SELECT agent, count(*) FROM ids GROUP BY agent HAVING count(*) > $1`, []any{idsKept}, func(row store.Scan) error {
		var agent string
		var n int64
		err := row(&agent, &n)
		beyond[agent] = n - idsKept
		return err
	})
	for agent, n := range beyond {
		if err != nil || gone >= most {
			break
		}
		n, err = c.Do(`DELETE FROM ids WHERE (agent, id) IN (SELECT agent, id FROM (SELECT agent, id, seq, at FROM ids WHERE agent = $1 ORDER BY seq LIMIT $2) AS old
			WHERE at < $3 AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.agent = old.agent AND e.seq = old.seq AND e.ended = 0) LIMIT $4)`,
			agent, n, store.Millis(now.Add(-idsFor)), most-gone)
		gone += n
	}
	return gone, err
}

// How long ids are remembered: until neither limit holds.
const (
	idsKept = 100_000
	idsFor  = 7 * 24 * time.Hour
)
