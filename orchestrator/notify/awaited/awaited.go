// Package awaited keeps who waits for the reply to which prompt: in the fleet's store, out of
// the agents' reach, because what an agent writes must not decide where its words go.
package awaited

import (
	"errors"
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
	// By is the agent whose session asks for it, Nobody, or "": a person, or this program. Who
	// asks does not say it: it is found out.
	By string `json:"-"`
}

// Nobody is who asks that is no person and of no session. No agent has this name.
const Nobody = "-"

// How many replies are waited for at most that sessions of an agent asked for, and persons, and
// how long a name is, in bytes: all are read at each look, and each stays for 30 days.
const (
	mostOfAgent   = 1000
	mostOfPersons = 10_000
	longest       = 512
)

// ErrOthers means that a session cannot end a wait that somebody else asked for.
var ErrOthers = errors.New("somebody else asked for it, and a session ends only what sessions of its agent asked for")

// Ask is Do for who is not this program: within bounds, and with By only for what the same one
// asked for. A wait of somebody else that is asked for again stays as it is. The error is
// ErrOthers, or says which bound is met.
func (o Order) Ask(c *store.Change) (known bool, err error) {
	r := o.Reply
	var by string
	known, err = c.One(`SELECT asked_by FROM awaited WHERE agent = $1 AND prompt = $2 AND target = $3`, []any{r.Agent, r.ID, r.Target}, &by)
	others := known && o.By != "" && by != o.By
	switch {
	case err == nil && others && o.Ends:
		return known, fmt.Errorf("cannot end the wait for the reply to %q: %w", r.ID, ErrOthers)
	case err == nil && others:
		return known, nil
	case err == nil && !known && !o.Ends:
		err = o.fits(c)
	}
	if err != nil {
		return known, fmt.Errorf("cannot note who waits for the reply: %w", err)
	}
	return o.Do(c)
}

// fits returns an error if there is no room for another wait.
func (o Order) fits(c *store.Change) error {
	for _, name := range []string{o.Reply.Agent, o.Reply.ID, o.Reply.Target} {
		if len(name) > longest {
			return fmt.Errorf("the name %.40q… has more than %d bytes", name, longest)
		}
	}
	most, whose := mostOfAgent, fmt.Sprintf("sessions of agent %q", o.By)
	switch o.By {
	case "":
		most, whose = mostOfPersons, "persons"
	case Nobody:
		whose = "processes that no person started"
	}
	var all int
	if _, err := c.One(`SELECT COUNT(*) FROM awaited WHERE asked_by = $1`, []any{o.By}, &all); err != nil {
		return err
	}
	if all >= most {
		return fmt.Errorf("%s wait for %d replies already, which is the most", whose, all)
	}
	return nil
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
		_, err = c.Do(`INSERT INTO awaited (agent, prompt, target, at, due, queued_before, asked_by) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (agent, prompt, target) DO UPDATE SET at = excluded.at, due = excluded.due, queued_before = excluded.queued_before, asked_by = excluded.asked_by`,
			r.Agent, r.ID, r.Target, store.Millis(r.At), store.Millis(r.Due), r.Before, o.By)
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
