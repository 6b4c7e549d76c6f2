// Package once has each order that a person gives by the page carried out once: a
// double tap, a reloaded page and a request that a proxy sends again get the first
// one's answer. What was ordered is kept in the fleet's store before it is carried
// out, so that this holds over a restart.
package once

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/orchestrator/store"
)

// Fresh is how long a form may be sent after it was drawn. What was ordered is
// remembered for longer than that.
const Fresh, remembered = 24 * time.Hour, 25 * time.Hour

// most is how many orders are remembered. With more than that in a day new ones are
// refused, rather than old ones forgotten.
const most = 5000

// Errors of orders.
var (
	ErrOld    = errors.New("the page was opened more than a day ago, or the clock was changed: load it again")
	ErrUnsure = errors.New("it was asked for already, and the scheduler has ended meanwhile: look before you ask again")
	ErrMany   = errors.New("too much was asked for in one day")
)

// Key returns a new key: each drawn form has one.
func Key(now time.Time) string { return strconv.FormatInt(now.Unix(), 36) + "-" + rand.Text() }

// drawn returns when a form with a key was drawn.
func drawn(key string) (time.Time, bool) {
	at, rest, ok := strings.Cut(key, "-")
	sec, err := strconv.ParseInt(at, 36, 64)
	return time.Unix(sec, 0), ok && err == nil && len(rest) >= 20 && len(key) <= 64
}

// Record is an order that was given.
type Record struct {
	At time.Time
	// Done is true once it was carried out, as Answer says, or, with Failed, was not.
	Done, Failed bool
	Answer       string
}

// Book remembers orders. Only one process may use a fleet's: its run.
type Book struct {
	store *store.Store
	now   func() time.Time

	mu   sync.Mutex
	busy map[order]chan struct{}
}

// order is what an order is known by.
type order struct{ token, form, what string }

// Open returns the book of a fleet's store; now is the clock, nil the system's.
func Open(s *store.Store, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{store: s, now: now, busy: map[order]chan struct{}{}}
}

// Do carries an order out, unless it was carried out before, and returns what became
// of it. token is the one that ordered it, key its form's, what the order itself: one form
// may give several. again is true for an answer of before. The error is about orders
// that are not carried out.
func (b *Book) Do(ctx context.Context, token, key, what string, do func() (string, error)) (r Record, again bool, err error) {
	if at, ok := drawn(key); !ok || b.now().Sub(at).Abs() > Fresh {
		return r, false, ErrOld
	}
	o := order{token, key, what}
	done, waited := b.enter(ctx, o)
	if waited != nil {
		return r, true, waited
	}
	defer done()
	old, err := b.begin(ctx, o)
	switch {
	case err != nil:
		return r, false, err
	case old != nil && !old.Done:
		return *old, true, ErrUnsure
	case old != nil:
		return *old, true, nil
	}
	r = Record{At: b.now()}
	answer, failed := do()
	if r.Done, r.Answer = true, answer; failed != nil {
		r.Failed, r.Answer = true, failed.Error()
	}
	// If this process is killed before, it is not known what became of it, but that it was asked for.
	b.store.Keep(fmt.Sprintf("what became of what form %s asked for (%s)", o.form, o.what), func() error {
		return b.store.Write(context.WithoutCancel(ctx), func(c *store.Change) error {
			_, err := c.Do(`UPDATE orders SET done = 1, failed = $1, answer = $2 WHERE token = $3 AND form = $4 AND what = $5`, r.Failed, r.Answer, o.token, o.form, o.what)
			return err
		})
	})
	return r, false, nil
}

// enter waits until nobody carries out the same order, and then keeps others waiting until
// leave is called.
func (b *Book) enter(ctx context.Context, o order) (leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy[o] != nil {
		wait := b.busy[o]
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		b.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	b.busy[o] = done
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, o)
		close(done)
	}, nil
}

// begin writes an order down, unless it was written down before: then it returns that one.
func (b *Book) begin(ctx context.Context, o order) (old *Record, err error) {
	now := b.now()
	err = b.store.Write(ctx, func(c *store.Change) error {
		old = nil
		r, found, err := recordOf(&c.View, `token = $1 AND form = $2 AND what = $3`, o.token, o.form, o.what)
		if err != nil || found {
			old = &r
			return err
		}
		if _, err := c.Do(`DELETE FROM orders WHERE at < $1 OR at > $2`, now.Add(-remembered).UnixMilli(), now.Add(remembered).UnixMilli()); err != nil {
			return err
		}
		var known int
		if _, err := c.One(`SELECT COUNT(*) FROM orders`, nil, &known); err != nil {
			return err
		}
		if known >= most {
			return ErrMany
		}
		_, err = c.Do(`INSERT INTO orders (token, form, what, at, done, failed, answer) VALUES ($1, $2, $3, $4, 0, 0, '')`, o.token, o.form, o.what, now.UnixMilli())
		return err
	})
	if err != nil && !errors.Is(err, ErrMany) {
		err = fmt.Errorf("it was not done, as it cannot be written down: %w", err)
	}
	return old, err
}

// recordOf returns the first order for which a condition holds.
func recordOf(v *store.View, where string, args ...any) (r Record, found bool, err error) {
	var at int64
	found, err = v.One(`SELECT at, done, failed, answer FROM orders WHERE `+where, args, &at, &r.Done, &r.Failed, &r.Answer)
	r.At = store.Time(at)
	return r, found, err
}

// Last returns the last order of somebody's form that has an answer.
func (b *Book) Last(ctx context.Context, token, key string) (last Record, ok bool) {
	if _, good := drawn(key); !good {
		return Record{}, false
	}
	err := b.store.Read(ctx, func(v *store.View) (err error) {
		last, ok, err = recordOf(v, `token = $1 AND form = $2 AND done = 1 ORDER BY at DESC LIMIT 1`, token, key)
		return err
	})
	return last, ok && err == nil
}
