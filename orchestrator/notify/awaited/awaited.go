// Package awaited keeps who waits for the reply to which prompt: in the fleet's store, out of
// the agents' reach, because what an agent writes must not decide where its words go.
package awaited

import (
	"fmt"
	"time"

	"heartbeat/orchestrator/store"
)

// Reply is one that somebody waits for: that to the prompt ID of an agent, for a
// target.
type Reply struct {
	Agent  string    `json:"agent"`
	ID     string    `json:"id"`
	Target string    `json:"target"`
	At     time.Time `json:"at"`
	// Due is when the prompt is sent, if that is later: what comes before is not its reply.
	Due time.Time `json:"due,omitzero"`
	// Before is true if the prompt was queued before its reply was asked for.
	Before bool `json:"before,omitzero"`
}

// From is since when the reply is waited for.
func (r Reply) From() time.Time {
	if r.Due.After(r.At) {
		return r.Due
	}
	return r.At
}

// Order changes who waits: somebody does or, with Ends, does not any more.
type Order struct {
	Reply Reply `json:"reply"`
	Ends  bool  `json:"ends,omitempty"`
}

// Do carries it out, and reports whether somebody waited for the reply before. The same one
// twice is one.
func (o Order) Do(c *store.Change) (known bool, err error) {
	r := o.Reply
	known, err = c.One(`SELECT at FROM awaited WHERE agent = $1 AND prompt = $2 AND target = $3`, []any{r.Agent, r.ID, r.Target}, new(int64))
	switch {
	case err != nil:
	case o.Ends:
		_, err = c.Do(`DELETE FROM awaited WHERE agent = $1 AND prompt = $2 AND target = $3`, r.Agent, r.ID, r.Target)
	default:
		_, err = c.Do(`INSERT INTO awaited (agent, prompt, target, at, due, queued_before) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (agent, prompt, target) DO UPDATE SET at = excluded.at, due = excluded.due, queued_before = excluded.queued_before`,
			r.Agent, r.ID, r.Target, store.Millis(r.At), store.Millis(r.Due), r.Before)
	}
	if err != nil {
		return known, fmt.Errorf("cannot note who waits for the reply: %w", err)
	}
	return known, nil
}

// RemoveBefore forgets those whose replies have been waited for since before a time.
func RemoveBefore(c *store.Change, t time.Time) error {
	_, err := c.Do(`DELETE FROM awaited WHERE at < $1 AND due < $1`, store.Millis(t))
	return err
}

// All returns those that somebody waits for.
func All(v *store.View) (all []Reply, err error) {
	err = v.Each(`SELECT agent, prompt, target, at, due, queued_before FROM awaited ORDER BY agent, prompt, target`, nil, func(scan store.Scan) error {
		var r Reply
		var at, due int64
		err := scan(&r.Agent, &r.ID, &r.Target, &at, &due, &r.Before)
		r.At, r.Due = store.Time(at), store.Time(due)
		all = append(all, r)
		return err
	})
	return all, err
}
