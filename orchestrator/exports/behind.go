package exports

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// ErrNotBehind means that nothing asks what is to be done about an agent's exports.
var ErrNotBehind = errors.New("its store is not older than its exports")

// Behind is an agent of which the store is older than its exports, because a backup or the
// snapshot of a machine was restored. Until a person says what is to be done (Continue, Skip)
// nothing may be handed over to it, and what is in flight may not be recovered.
type Behind struct {
	Agent string    // its permanent key
	Since time.Time // when that was found
	// Hidden is how many entries have ended of which no line is left.
	Hidden int64
	// Again are the entries that Continue gives again; Waiting those that it leaves as they are,
	// since they wait for a person; Gone those that this store has never seen or knows as dead: what
	// they were is known from their lines alone.
	Again, Waiting, Gone []Known
}

// Known is how an entry has ended, by its line.
type Known struct {
	Delivery, ID string
	State        queue.State  // in this store; "": it is not there
	Begins       string       // its first words; "": they are not known
	Reason       queue.Reason // why it was dead; "": it was done
	At           time.Time
}

// words is how much of a prompt Begins has, in bytes.
const words = 80

// Compare looks whether the store is older than the exports of agents, and keeps what it finds. It
// is for the start of a run, before anything is handed over, exported or taken in, and returns the
// agents that it has found now. IsBehind has all.
func (x *Exporter) Compare(ctx context.Context, now time.Time, places ...Place) (found []string, err error) {
	for _, at := range places {
		n, err := store.Get(ctx, x.store.Reader, func(v *store.View) (entries.Counts, error) { return entries.CountsOf(v, at.Agent) })
		if err != nil {
			return found, err
		}
		a := x.seal.lookAhead(at, n)
		if a.done <= n.Done && a.dead <= n.Dead {
			continue
		}
		if err := x.store.Write(ctx, func(c *store.Change) error { return note(c, at.Agent, a, n, now) }); err != nil {
			return found, fmt.Errorf("cannot keep what the exports of %s show: %w", at.Agent, err)
		}
		of := x.of(at.Agent)
		of.mu.Lock()
		for i, reached := range a.reached(n) {
			if reached > 0 {
				of.files[i].now.n, of.files[i].kept.n = reached, reached
			}
		}
		of.mu.Unlock()
		found = append(found, at.Agent)
	}
	return found, nil
}

// reached returns how far each file has come that is ahead of the store; 0: it is not, and what is
// owed to it still is.
func (a ahead) reached(n entries.Counts) (all [len(kinds)]int64) {
	if a.done > n.Done {
		all[0] = a.done
	}
	if a.dead > n.Dead {
		all[1] = a.dead
	}
	return all
}

// note keeps that an agent is behind, and has its numbers go on behind those that were given. n are
// those that the store knows.
func note(c *store.Change, key string, a ahead, n entries.Counts, now time.Time) error {
	var seq int64
	if _, err := c.One(`SELECT seq FROM queues WHERE agent = $1`, []any{key}, &seq); err != nil {
		return err
	}
	if err := entries.Pass(c, key, a.done, a.dead, now); err != nil {
		return err
	}
	if _, err := c.Do(`INSERT INTO behind (agent, at, seq, hidden) VALUES ($1, $2, $3, $4)
		ON CONFLICT (agent) DO UPDATE SET hidden = behind.hidden + excluded.hidden`, key, store.Millis(now), seq, a.hidden); err != nil {
		return err
	}
	for i, reached := range a.reached(n) {
		if reached == 0 {
			continue
		}
		if _, err := c.Do(`INSERT INTO exports (agent, state, n, gone, owed, why) VALUES ($1, $2, $3, 0, 0, '') ON CONFLICT (agent, state) DO UPDATE SET n = excluded.n`,
			key, string(kinds[i].state), reached); err != nil {
			return err
		}
	}
	for _, e := range a.ends {
		if err := e.keep(c, key); err != nil {
			return err
		}
	}
	return follow(c, key, a.ends, now)
}

// follow moves entries that another agent has in this store to the one whose exports show how they
// ended: they were moved to it after the store was written.
func follow(c *store.Change, key string, ends []shown, now time.Time) error {
	moved := map[string]bool{}
	for _, e := range ends {
		has, err := entries.Find(&c.View, key, e.delivery)
		if err != nil {
			return err
		}
		if has == nil {
			moved[e.delivery] = true
		}
	}
	if len(moved) == 0 {
		return nil
	}
	var from []queue.Key
	err := c.Each(`SELECT agent, seq, delivery FROM entries WHERE ended = 0 AND agent <> $1`, []any{key}, func(row store.Scan) error {
		var k queue.Key
		var delivery string
		err := row(&k.Agent, &k.Seq, &delivery)
		if moved[delivery] {
			from = append(from, k)
		}
		return err
	})
	for _, k := range from {
		if err == nil {
			_, err = entries.GiveAgain(c, k, now)
		}
		if err == nil {
			_, err = entries.Transfer(c, k, key)
		}
		if errors.Is(err, queue.ErrState) { // it waits for a person
			err = nil
		}
	}
	return err
}

const endNames = `delivery, n, entry_id, id, source, urgent, session, given, ended, attempt, repeats, iteration, reason, cause, output,
	line, length, excerpt, reply, cut, abandoned, checked, by_whom, took`

// keep keeps an end that the store does not know.
func (e *shown) keep(c *store.Change, key string) error {
	by, took := "", int64(0)
	if e.Verdict != nil {
		by, took = e.Verdict.By, e.Verdict.Took.Milliseconds()
	}
	if _, err := c.Do(`DELETE FROM behind_ends WHERE agent = $1 AND delivery = $2`, key, e.delivery); err != nil {
		return err
	}
	_, err := c.Do(`INSERT INTO behind_ends (agent, `+endNames+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`,
		key, e.delivery, e.N, e.entryID, e.id, e.source, e.urgent, e.Handover.Session, store.Millis(e.Handover.At), store.Millis(e.At),
		e.Attempt, e.Repeats, e.Iteration, string(e.Reason), e.Cause, e.Output, append([]byte{}, e.line...), e.length, e.excerpt,
		e.Reply.Text, e.Reply.Cut, strings.Join(e.Reply.Abandoned, "\n"), e.checked, by, took)
	return err
}

// kept returns the ends that are kept of an agent, in their order.
func kept(v *store.View, key string) (all []shown, err error) {
	err = v.Each(`SELECT `+endNames+` FROM behind_ends WHERE agent = $1 ORDER BY ended, n`, []any{key}, func(row store.Scan) error {
		var e shown
		var given, at, ms int64
		var abandoned, by string
		err := row(&e.delivery, &e.N, &e.entryID, &e.id, &e.source, &e.urgent, &e.Handover.Session, &given, &at, &e.Attempt, &e.Repeats, &e.Iteration,
			&e.Reason, &e.Cause, &e.Output, &e.line, &e.length, &e.excerpt, &e.Reply.Text, &e.Reply.Cut, &abandoned, &e.checked, &by, &ms)
		e.Handover.At, e.At = store.Time(given), store.Time(at)
		e.Reply.Session, e.Reply.At = e.Handover.Session, e.At
		if abandoned != "" {
			e.Reply.Abandoned = strings.Split(abandoned, "\n")
		}
		if e.checked && e.Reason == "" {
			e.Verdict = &entries.Verdict{Iteration: e.Iteration, By: by, Took: took(ms), At: e.At}
			e.Verdict.Passed = true
		}
		all = append(all, e)
		return err
	})
	return all, err
}

func took(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// IsBehind reports whether nothing may be handed over to an agent until a person has said what is
// to be done.
func IsBehind(v *store.View, key string) (bool, error) {
	return v.One(`SELECT agent FROM behind WHERE agent = $1`, []any{key}, new(string))
}

// AllBehind returns the agents of which the store is older than their exports.
func AllBehind(v *store.View) (all []Behind, err error) {
	err = v.Each(`SELECT agent, at, hidden FROM behind ORDER BY agent`, nil, func(row store.Scan) error {
		var b Behind
		var at int64
		err := row(&b.Agent, &at, &b.Hidden)
		b.Since = store.Time(at)
		all = append(all, b)
		return err
	})
	for i := range all {
		if err == nil {
			err = all[i].tell(v)
		}
	}
	return all, err
}

func (b *Behind) tell(v *store.View) error {
	ends, err := kept(v, b.Agent)
	if err != nil {
		return err
	}
	for _, e := range ends {
		is, err := e.find(v, b.Agent)
		if err != nil {
			return err
		}
		t, k := e.text(), Known{Delivery: e.delivery, ID: e.id, Reason: e.Reason, At: e.At}
		if is != nil {
			k.State = is.State
			if t, err = entries.TextOf(v, is.Key); err != nil && !errors.Is(err, entries.ErrDamaged) {
				return err
			}
		}
		k.Begins, _ = queue.Cut(strings.Join(strings.Fields(t.Prompt), " "), words)
		switch {
		case isGivenAgain(is):
			b.Again = append(b.Again, k)
		case is != nil && is.State == queue.Suspended:
			b.Waiting = append(b.Waiting, k)
		default:
			b.Gone = append(b.Gone, k)
		}
	}
	return nil
}

// isGivenAgain reports whether Continue gives an entry again; nil: there is none.
func isGivenAgain(is *queue.Entry) bool {
	return is != nil && !is.State.HasEnded() && is.State != queue.Suspended
}

// find returns the entry that a line is about: the same, or one that was sent again under its id
// after the store was restored; nil: there is none.
func (e *shown) find(v *store.View, key string) (*queue.Entry, error) {
	is, err := entries.Find(v, key, e.delivery)
	if is != nil || err != nil || e.id == "" {
		return is, err
	}
	if is, err = entries.Named(v, key, e.id); is != nil && is.State.HasEnded() {
		is = nil
	}
	return is, err
}

// Continue has an agent go on with what its store knows: what has not ended there is given again,
// marked as a repeat, whatever the exports show, but for what waits for a person. Dead letters that only they have are kept. It
// returns the entries that are given again, and ErrNotBehind if nothing asks.
func Continue(c *store.Change, key string, now time.Time) (again []queue.Entry, err error) {
	return settle(c, key, now, func(e shown, is *queue.Entry) (*queue.Entry, error) {
		switch {
		case isGivenAgain(is):
			return entries.GiveAgain(c, is.Key, now)
		case is == nil && e.Reason != "":
			return nil, e.add(c, key)
		}
		return nil, nil
	})
}

// Skip has what an agent's exports show count: what is done or dead there is that here, and what
// this store has never seen is kept, with its id, so that it is not taken again. The error is
// ErrNotBehind if nothing asks.
func Skip(c *store.Change, key string, now time.Time) error {
	_, err := settle(c, key, now, func(e shown, is *queue.Entry) (*queue.Entry, error) {
		switch {
		case is == nil:
			return nil, e.add(c, key)
		case is.State == queue.Done, is.State == queue.Dropped:
			return nil, nil
		}
		return nil, entries.EndAs(c, is.Key, e.Past)
	})
	return err
}

// settle carries out what a person has said of each end.
func settle(c *store.Change, key string, now time.Time, each func(e shown, is *queue.Entry) (*queue.Entry, error)) (again []queue.Entry, err error) {
	var seq, hidden int64
	switch found, err := c.One(`SELECT seq, hidden FROM behind WHERE agent = $1`, []any{key}, &seq, &hidden); {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("cannot settle what the exports of %s show: %w", key, ErrNotBehind)
	}
	ends, err := kept(&c.View, key)
	if err != nil {
		return nil, err
	}
	given := map[int64]bool{}
	for _, e := range ends {
		is, err := e.find(&c.View, key)
		if err != nil {
			return nil, err
		}
		got, err := each(e, is)
		if err != nil {
			return nil, err
		}
		if got != nil && !given[got.Seq] {
			given[got.Seq] = true
			again = append(again, *got)
		}
	}
	if err := markNext(c, key, seq, hidden+1, given, now); err != nil {
		return nil, err
	}
	for _, table := range []string{"behind", "behind_ends"} {
		if _, err := c.Do(`DELETE FROM `+table+` WHERE agent = $1`, key); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// markNext marks as repeats the first entries that were queued when the store was written and of
// which no line tells, those whose time has come among them: one was perhaps in flight when that
// was lost of which the exports tell, and as many as are hidden have ended.
func markNext(c *store.Change, key string, seq, most int64, but map[int64]bool, now time.Time) error {
	var next []int64
	take := func(row store.Scan) error {
		var at int64
		err := row(&at)
		if !but[at] {
			next = append(next, at)
		}
		return err
	}
	err := c.Each(`SELECT seq FROM entries WHERE agent = $1 AND state = 'queued' AND seq <= $2 ORDER BY lane, place LIMIT $3`, []any{key, seq, most + int64(len(but))}, take)
	next = next[:min(len(next), int(most))]
	if err == nil {
		err = c.Each(`SELECT seq FROM entries WHERE agent = $1 AND ended = 0 AND state = 'later' AND seq <= $2 AND not_before <= $3`, []any{key, seq, store.Millis(now)}, take)
	}
	for _, at := range next {
		if err == nil {
			_, err = entries.GiveAgain(c, queue.Key{Agent: key, Seq: at}, now)
		}
	}
	return err
}

// add makes an entry, which has ended, of a line.
func (e *shown) add(c *store.Change, key string) error {
	is := queue.Entry{
		Delivery: e.delivery, EntryID: e.entryID, ID: e.id, Source: e.source, Accepted: e.At, State: queue.Queued, Lane: queue.Normal,
	}
	is.Checked = e.checked
	if e.urgent {
		is.Lane = queue.Urgent
	}
	is, err := entries.Insert(c, key, is, e.text())
	if err != nil {
		return err
	}
	return entries.EndAs(c, is.Key, e.Past)
}

// Carry takes over, into a backup that is restored, the key of the store in whose place it comes,
// where the backup was made before it had one. was is that store; nil: it cannot be read.
func Carry(was *store.View, c *store.Change) error {
	if was == nil {
		return nil
	}
	var before, is string
	if _, err := was.One(`SELECT store_id FROM store`, nil, &before); err != nil {
		return err
	}
	if _, err := c.One(`SELECT store_id FROM store`, nil, &is); err != nil || before != is {
		return err
	}
	var key []byte
	if found, err := was.One(`SELECT key FROM export_key`, nil, &key); err != nil || !found {
		return err
	}
	_, err := c.Do(`INSERT INTO export_key (one, key) VALUES (1, $1) ON CONFLICT (one) DO NOTHING`, key)
	return err
}
