package memo

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/store"
)

// Record is the outcome of an attempt to deliver a message.
type Record struct {
	At      time.Time      `json:"at"`
	Target  string         `json:"target"`
	Outcome outbox.Outcome `json:"outcome"`
	Key     string         `json:"key"`
	// Attempts counts the attempts for this message, this one included.
	Attempts int             `json:"attempts"`
	Why      foreign.Text    `json:"why,omitempty"`
	Notices  []notice.Notice `json:"notices"`
}

// mostLogged limits a reply's text in a record, in runes; mostRecords is how many records are
// kept.
const mostLogged, mostRecords = 1000, 10_000

// Log adds a record, and removes those that are too many.
func Log(c *store.Change, r Record) error {
	r.Notices = slices.Clone(r.Notices)
	for i := range r.Notices {
		r.Notices[i].Reply = foreign.Short(r.Notices[i].Reply, mostLogged)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.Do(`INSERT INTO messages (n, at, target, outcome, replies, why, body) VALUES ((SELECT COALESCE(MAX(n), 0) + 1 FROM messages), $1, $2, $3, $4, $5, $6)`,
		store.Millis(r.At), r.Target, string(r.Outcome), outbox.Replies(r.Notices), r.Why.Raw(), string(body))
	if err == nil {
		_, err = c.Do(`DELETE FROM messages WHERE n <= (SELECT MAX(n) FROM messages) - $1`, mostRecords)
	}
	return err
}

// Records returns the newest records, at most most of them, oldest first: those of the
// named targets, or of all targets there ever were if none is named.
func Records(v *store.View, most int, targets []string) (all []Record, err error) {
	where, args := "", []any{most}
	for _, t := range targets {
		args = append(args, t)
		where += fmt.Sprintf(", $%d", len(args))
	}
	if where != "" {
		where = " WHERE target IN (" + where[2:] + ")"
	}
	err = v.Each("SELECT body FROM messages"+where+" ORDER BY n DESC LIMIT $1", args, func(scan store.Scan) error {
		var body []byte
		var r Record
		if err := scan(&body); err != nil {
			return err
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("cannot read a record of a message: %w", err)
		}
		all = append(all, r)
		return nil
	})
	slices.Reverse(all)
	return all, err
}

// Failure is a message with replies that was given up.
type Failure struct {
	Target  string
	Replies int
	Why     string
}

// GivenUp returns the messages with replies that were given up since a time, oldest first.
func GivenUp(v *store.View, since time.Time) (all []Failure, err error) {
	err = v.Each(`SELECT target, replies, why FROM messages WHERE outcome = $1 AND replies > 0 AND at >= $2 ORDER BY n`, []any{string(outbox.GivenUp), since.UnixMilli()}, func(scan store.Scan) error {
		var f Failure
		err := scan(&f.Target, &f.Replies, &f.Why)
		all = append(all, f)
		return err
	})
	return all, err
}
