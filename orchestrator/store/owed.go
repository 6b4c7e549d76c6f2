package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// owedSoon is how long after it was asked for a fact is written, so that several of one
	// name become one.
	owedSoon = 200 * time.Millisecond
	// What could not be written is tried again after firstAgain, then after twice as long as
	// before, up to lastAgain.
	firstAgain, lastAgain = 500 * time.Millisecond, 5 * time.Second
	// mostOwed is how many facts are owed at most; those that are too many are only counted.
	mostOwed = 20_000
	// mostNamed is how many of those that could not be written are named.
	mostNamed = 3
)

// debt is a fact that is to be written.
type debt struct {
	write func() error
	due   time.Time
	wait  time.Duration // after the last try; 0: there was none
	since time.Time     // when a try failed first; zero: none has
	err   error         // of the last try
}

// debts are the facts that are to be written, by their names.
type debts struct {
	asked   chan struct{} // one is owed that was not
	closing chan struct{}
	ended   chan struct{}

	mu   sync.Mutex
	all  map[string]*debt
	busy map[string]chan struct{} // closed when the try ends
	lost int                      // were too many, and are never written
	from time.Time                // when the first was lost
}

// errTooMany is why facts are lost.
var errTooMany = fmt.Errorf("more than %d facts at once had to be written", mostOwed)

func newDebts() *debts {
	return &debts{asked: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}), all: map[string]*debt{}, busy: map[string]chan struct{}{}}
}

// Owe has a fact written soon that has come to be true already, and so must come to be in the
// store. name says which, as in "the store does not have yet NAME"; write writes it as it is when
// that is called, and replaces what is owed under the same name. A write that fails is
// tried again until it does not, and a last time when the store is closed; Troubles names it
// meanwhile. Where too many are owed it is lost, which Troubles and Close tell from then on. So it must do no harm twice. The caller may hold a lock.
func (s *Store) Owe(name string, write func() error) {
	d := s.debts
	d.mu.Lock()
	defer d.mu.Unlock()
	is := &debt{write: write, due: time.Now().Add(owedSoon)}
	if was := d.all[name]; was != nil {
		is.due, is.since, is.wait, is.err = was.due, was.since, was.wait, was.err
	} else if len(d.all) >= mostOwed {
		d.lost++
		d.from = cmp.Or(d.from, time.Now())
		return
	}
	d.all[name] = is
	select {
	case d.asked <- struct{}{}:
	default:
	}
}

// Keep is Owe, and returns when that was tried.
func (s *Store) Keep(name string, write func() error) {
	s.Owe(name, write)
	s.Pay(name)
}

// Pay returns when what is owed under some names was tried, all that is owed if none is given.
func (s *Store) Pay(names ...string) {
	d := s.debts
	if len(names) == 0 {
		d.mu.Lock()
		names = slices.Collect(maps.Keys(d.all))
		d.mu.Unlock()
	}
	var all sync.WaitGroup
	room := make(chan struct{}, maxBatch) // they are committed together
	for _, name := range names {
		room <- struct{}{}
		all.Go(func() { d.pay(name); <-room })
	}
	all.Wait()
}

// pay tries to write what is owed under a name. Two tries of one name never overlap.
func (d *debts) pay(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy[name] != nil {
		busy := d.busy[name]
		d.mu.Unlock()
		<-busy
		d.mu.Lock()
	}
	owed := d.all[name]
	if owed == nil {
		return
	}
	done := make(chan struct{})
	d.busy[name] = done
	d.mu.Unlock()
	err := owed.write()
	d.mu.Lock()
	delete(d.busy, name)
	close(done)
	is := d.all[name]
	switch {
	case err != nil:
		is.err, is.wait = err, min(max(2*is.wait, firstAgain), lastAgain)
		now := time.Now()
		is.due, is.since = now.Add(is.wait), cmp.Or(is.since, now)
	case is == owed:
		delete(d.all, name)
	default:
		is.err, is.wait, is.since = nil, 0, time.Time{}
	}
}

// due returns the names of what is to be tried now, and when the next one is; zero: none is.
func (d *debts) due(now time.Time) (names []string, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, is := range d.all {
		switch {
		case !is.due.After(now):
			names = append(names, name)
		case next.IsZero() || is.due.Before(next):
			next = is.due
		}
	}
	return names, next
}

// payDebts writes what is owed until the store is closed.
func (s *Store) payDebts() {
	d := s.debts
	defer close(d.ended)
	for {
		names, next := d.due(time.Now())
		if len(names) > 0 {
			s.Pay(names...)
			continue
		}
		var wait <-chan time.Time
		if !next.IsZero() {
			wait = time.After(time.Until(next))
		}
		select {
		case <-wait:
		case <-d.asked:
		case <-d.closing:
			return
		}
	}
}

// closeDebts tries a last time to write what is owed. The error names what is not written.
func (s *Store) closeDebts() error {
	d := s.debts
	close(d.closing)
	<-d.ended
	s.Pay()
	if text, _, err := d.failing(); text != "" {
		return fmt.Errorf("the store does not have %s: %w", text, err)
	}
	return nil
}

// failing names what could not be written, says since when, and why not. The text is "" where
// that is nothing. What is lost is counted; the error is errTooMany where nothing else fails.
func (d *debts) failing() (text string, since time.Time, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name, is := range d.all {
		if is.since.IsZero() {
			continue
		}
		names = append(names, name)
		if since.IsZero() || is.since.Before(since) {
			since, err = is.since, is.err
		}
	}
	switch {
	case len(names) == 0 && d.lost == 0:
		return "", since, nil
	case len(names) == 0:
		return fmt.Sprintf("%d facts", d.lost), d.from, errTooMany
	}
	slices.Sort(names)
	more := max(0, len(names)-mostNamed) + d.lost
	text = strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text, since, err
}

// tell has troubles say what could not be written because of them, or makes it one.
func (d *debts) tell(all []Trouble) []Trouble {
	text, since, err := d.failing()
	if text == "" {
		return all
	}
	if errors.Is(err, errTooMany) {
		return append(all, Trouble{
			Kind: Owed, Since: since, Text: fmt.Sprintf("the store does not have %s: %v", text, err),
			Do: "compare what heartbeat status says with what you know: they are not written any more",
		})
	}
	for i := range all {
		if slices.Contains(writes, all[i].Kind) {
			all[i].Text += "; it does not have yet " + text
			return all
		}
	}
	if _, is := errors.AsType[typed](err); is {
		return all // that is over, and it is tried again at once
	}
	return append(all, Trouble{
		Kind: Owed, Since: since, Text: fmt.Sprintf("the store does not have yet %s: %v", text, err),
		Do: "keep the run: it tries again by itself, and what the store does not have is lost if the run is killed",
	})
}
