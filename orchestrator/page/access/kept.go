package access

import (
	"time"

	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// List is who has a token, and which links nobody has opened yet.
type List struct {
	Tokens []Token `json:"tokens"`
	Links  []Token `json:"links"`
}

// HasCommand reports whether there is a token for the command line.
func (l List) HasCommand() bool {
	for _, t := range l.Tokens {
		if t.Role == Command {
			return true
		}
	}
	return false
}

// Read lists those that are good now.
func Read(v *store.View, now time.Time) (l List, err error) {
	all, err := kept(v, now)
	for _, s := range all {
		switch {
		case deadline.Over(s.Until, now):
		case s.Link:
			l.Links = append(l.Links, s.Token)
		default:
			l.Tokens = append(l.Tokens, s.Token)
		}
	}
	return l, err
}

// Secrets returns what is kept, the oldest first, and the name that links have on this machine.
func Secrets(v *store.View, now time.Time) (all []Secret, name string, err error) {
	if all, err = kept(v, now); err == nil {
		name, err = host(v)
	}
	return all, name, err
}

// kept returns what is kept, the oldest first. What a clock that was ahead has put there lasts
// no longer than what is made when it is read.
func kept(v *store.View, now time.Time) (all []Secret, err error) {
	err = v.Each(`SELECT hash, id, name, role, link, made, used, until FROM tokens ORDER BY made, id`, nil, func(scan store.Scan) error {
		var s Secret
		var made, used, until int64
		if err := scan(&s.Hash, &s.ID, &s.Name, &s.Role, &s.Link, &made, &used, &until); err != nil {
			return err
		}
		s.Made, s.Used, s.Until = store.Time(made), deadline.Since(store.Time(used), now), deadline.On(store.Time(until), now, s.lasts())
		all = append(all, s)
		return nil
	})
	return all, err
}

// Keep keeps a token or a link, in place of what was kept of the same secret; now is the
// clock that its times are of.
func Keep(c *store.Change, s Secret, now time.Time) error {
	_, err := c.Do(`INSERT INTO tokens (hash, id, name, role, link, made, used, until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (hash) DO UPDATE SET used = excluded.used, until = excluded.until`,
		s.Hash, s.ID, s.Name, string(s.Role), s.Link, store.Millis(s.Made), store.Millis(s.Used), store.Millis(deadline.Shown(s.Until, now)))
	return err
}

func remove(c *store.Change, s Secret) error {
	_, err := c.Do(`DELETE FROM tokens WHERE hash = $1`, s.Hash)
	return err
}

// host returns the name that links have, "" if there is none yet.
func host(v *store.View) (name string, err error) {
	_, err = v.One(`SELECT host FROM page`, nil, &name)
	return name, err
}

// KeepHost keeps the name that links have on this machine, unless there is one.
func KeepHost(c *store.Change, name string) error {
	_, err := c.Do(`INSERT INTO page (one, host) VALUES (1, $1) ON CONFLICT (one) DO NOTHING`, name)
	return err
}

// Carry has a backup that is restored let in whom the store in its place lets in, and nobody
// else: what was revoked, or opened, since the backup was made stays so. before is nil if
// there is no such store, or it cannot be read: then nobody has a token.
func Carry(before *store.View, c *store.Change, now time.Time) error {
	if _, err := c.Do(`DELETE FROM tokens`); err != nil || before == nil {
		return err
	}
	all, err := kept(before, now)
	for _, s := range all {
		if err == nil {
			err = Keep(c, s, now)
		}
	}
	return err
}
