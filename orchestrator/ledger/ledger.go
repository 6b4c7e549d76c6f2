// Package ledger keeps, in the state directory, what has been decided about the
// work of agents: done means a passed verdict here, whatever the files in an
// agent's directory say. It decides nothing.
//
// Everything is synced before it is applied to a queue: a verdict that was decided
// is applied after a crash, and not decided again. The agent's queue in turn can be
// lost or edited without a change here.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/state"
)

// Verdict is what was decided about one check of an entry.
type Verdict struct {
	Delivery string `json:"delivery"`
	// Entry is the hash of its line: the agent can write the delivery id of another one.
	Entry string `json:"entry,omitempty"`
	// Check is the number of the check that the queue has asked for; Iteration is
	// what people call it.
	Check     int `json:"check"`
	Iteration int `json:"iteration"`
	// Claimed is when the session claimed to be done that was checked: the agent can
	// set back the number.
	Claimed time.Time `json:"claimed,omitzero"`
	// Definition is a hash of the until: that it was decided by.
	Definition string `json:"definition"`
	Passed     bool   `json:"passed"`
	// GiveUp is why the entry is given up, or "".
	GiveUp inbox.Reason `json:"give_up,omitempty"`
	// By says what has decided: "check", "promise", an approval.
	By string `json:"by"`
	// Why is what the check ended with, Output the end of what it printed.
	Why    string        `json:"why,omitempty"`
	Output string        `json:"output,omitempty"`
	Took   time.Duration `json:"took"`
	At     time.Time     `json:"at"`
	// NotBefore is when it may be applied at the earliest; zero: at once.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Answers is what people have said to what the agent has asked, and Told are the
	// requests: with it the entry is handed over again, and nothing was checked.
	Answers string   `json:"answers,omitempty"`
	Told    []string `json:"told,omitempty"`
	// Applied is true once the queue has it. One that has not passed is applied once:
	// a check that is asked for again is run again.
	Applied bool `json:"applied,omitempty"`
}

// Same reports whether two verdicts are about the same check.
func (v *Verdict) Same(as Verdict) bool {
	return v.Delivery == as.Delivery && v.Entry == as.Entry && v.Check == as.Check && v.Claimed.Equal(as.Claimed) && v.Definition == as.Definition
}

// Answered is a check that has passed, while people have not said yes to it yet.
type Answered struct {
	Check      int           `json:"check"`
	Claimed    time.Time     `json:"claimed,omitzero"`
	Definition string        `json:"definition"`
	Output     string        `json:"output,omitempty"`
	Took       time.Duration `json:"took"`
	At         time.Time     `json:"at"`
}

// Vain is how often in a row a check gave no answer, since when, and in the words of
// room status what it was the last time, and why.
type Vain struct {
	Since time.Time `json:"since"`
	Times int       `json:"times"`
	As    string    `json:"as"`
	Why   string    `json:"why"`
}

// From says who demands that an entry is proven.
type From string

// Who demands it.
const (
	FromAgent From = "agent" // the until: of its agent
	FromEntry From = "entry" // a Demand, of send or of a trigger
)

// Course is what is known of one entry that has to be proven: the one in flight.
type Course struct {
	Delivery string `json:"delivery,omitempty"`
	// Entry is the hash of the line that was handed over, from when it was first seen: the
	// agent can write another one into its record. "" where nobody has seen it.
	Entry string `json:"entry,omitempty"`
	// From says whose until: it has to pass.
	From From       `json:"from,omitempty"`
	Past guard.Past `json:"past,omitzero"`
	// Asks is how often it was handed over again with Answers.
	Asks int `json:"asks,omitempty"`
	// Files is a digest of the agent's files after the last check; "" where it is not
	// known.
	Files string `json:"files,omitempty"`
	// Answered waits for people; nil: nothing does.
	Answered *Answered `json:"answered,omitempty"`
	// Vain counts the checks since the last verdict that gave no answer; nil: the last
	// one gave one.
	Vain *Vain `json:"vain,omitempty"`
	// Verdict is the last one; nil: there is none yet.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Iteration is the number of the present hand-over, from 1, as people count them.
func (c Course) Iteration() int { return c.Past.Iterations + c.Asks + 1 }

// Stands returns the verdict about the same check as another one, or nil: there is
// none to apply.
func (c Course) Stands(as Verdict) *Verdict {
	if v := c.Verdict; v != nil && v.Same(as) && (v.Passed || !v.Applied) {
		return v
	}
	return nil
}

// over reports whether the queue has a verdict that ends the entry.
func (c Course) over() bool {
	v := c.Verdict
	return v != nil && v.Applied && (v.Passed || v.GiveUp != "")
}

// Waits reports whether the check that a verdict is about has passed already, and
// waits for people.
func (c Course) Waits(v Verdict) bool {
	a := c.Answered
	return a != nil && a.Check == v.Check && a.Claimed.Equal(v.Claimed) && a.Definition == v.Definition
}

// Proven is an entry that has passed.
type Proven struct {
	Delivery string    `json:"delivery"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	// ID is the entry's, Record a digest of the outbox record of its verdict; "": neither
	// is known.
	ID     string `json:"id,omitempty"`
	Record string `json:"record,omitempty"`
}

// mostProven is how many of them are kept on disk: what becomes done is compared soon
// afterwards. mostPassed is how many more this run remembers: a comparison reaches back
// no further than it, and may fail for long.
const (
	mostProven = 256
	mostPassed = 1 << 16
)

// mostCourses is how many entries are known at once: one in flight, those that are set
// aside, and the last ones that came in between.
const mostCourses = 4 + inbox.MostAside

// book is proofs/KEY.json.
type book struct {
	// Courses are those of the last entries, the one that was kept last behind.
	Courses []Course `json:"courses,omitempty"`
	Proven  []Proven `json:"proven,omitempty"`
	// Until is true if the agent had an until: of its own when its last session began.
	Until bool `json:"until,omitempty"`
	// Since is from when on all is among Proven that has passed; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Forged are digests of the last outbox records that are no verdict's.
	Forged []string `json:"forged,omitempty"`
	// Mark is how far the queue was compared with what is proven while a session lives.
	Mark *inbox.OutboxMark `json:"mark,omitempty"`
}

// Book is what is kept of one agent. Several goroutines may use it.
type Book struct {
	path   string
	mu     sync.Mutex
	passed map[string]bool // in this run
	book
}

func bookPath(stateDir, key string) string {
	return filepath.Join(stateDir, "proofs", filepath.Base(key)+".json")
}

// Open reads the book of the agent with a key. A damaged one is put aside, and the
// error, which matches state.ErrDamaged, says so beside an empty book: what was
// decided and not applied is decided again.
func Open(stateDir, key string) (*Book, error) {
	b := &Book{path: bookPath(stateDir, key)}
	err := state.Load(b.path, &b.book)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case errors.Is(err, state.ErrDamaged):
		b.book = book{}
		return b, errors.Join(err, os.Rename(b.path, b.path+".damaged"))
	case err != nil:
		return nil, err
	}
	return b, nil
}

// Course returns what is known of an entry.
func (b *Book) Course(delivery string) Course {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.book.Courses {
		if c.Delivery == delivery {
			return c
		}
	}
	return Course{Delivery: delivery}
}

// Keep records the course of an entry, durably. One whose verdict is passed counts
// as proven from then on.
func (b *Book) Keep(c Course) error {
	err := b.change(func(k *book) {
		others := slices.DeleteFunc(slices.Clone(k.Courses), func(o Course) bool { return o.Delivery == c.Delivery })
		k.Courses = append(room(others), c)
		if v := c.Verdict; v != nil && v.Passed && !slices.ContainsFunc(k.Proven, func(p Proven) bool { return p.Delivery == v.Delivery }) {
			k.Proven = append(slices.Clone(k.Proven), Proven{Delivery: v.Delivery, By: v.By, At: time.Now()})
			k.trim()
		}
	})
	if v := c.Verdict; err == nil && v != nil && v.Passed {
		b.passes(v.Delivery)
	}
	return err
}

// room returns the courses without one of them where there is no room for one more: one
// that has ended; else one that waits for nobody. Others may pass for days while one
// that is set aside waits for a person.
func room(all []Course) []Course {
	if len(all) < mostCourses {
		return all
	}
	i := slices.IndexFunc(all, Course.over)
	if i < 0 {
		i = max(0, slices.IndexFunc(all, func(c Course) bool { return c.Answered == nil }))
	}
	return slices.Delete(all, i, i+1)
}

// passes remembers an entry that has passed.
func (b *Book) passes(delivery string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passed == nil || len(b.passed) >= mostPassed {
		b.passed = map[string]bool{}
	}
	b.passed[delivery] = true
}

// Passed reports whether an entry is proven. Of those that passed before this run it
// knows the last ones.
func (b *Book) Passed(delivery string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passed[delivery] {
		return true
	}
	return slices.ContainsFunc(b.book.Proven, func(p Proven) bool { return p.Delivery == delivery })
}

// Demands reports whether the agent had an until: of its own when its last session
// began, so that this one's entries are checked without a Demand.
func (b *Book) Demands() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.Until
}

// Begins records whether the session that is about to begin has an until: of its own.
func (b *Book) Begins(until bool) error {
	b.mu.Lock()
	same := b.book.Until == until && (!until || !b.book.Since.IsZero())
	b.mu.Unlock()
	if same {
		return nil
	}
	return b.change(func(k *book) { k.begins(until, time.Now()) })
}

// Mark is what Marks has kept; nil: nothing.
func (b *Book) Mark() *inbox.OutboxMark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.Mark
}

// Marks keeps how far the queue was compared, for a scheduler that finds a session that
// was killed; nil: to its end.
func (b *Book) Marks(m *inbox.OutboxMark) error {
	if b.Mark() == nil && m == nil {
		return nil
	}
	return b.change(func(k *book) { k.Mark = m })
}

// change writes a changed book; if that fails, it is what it was.
func (b *Book) change(how func(*book)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.book
	how(&next)
	if err := state.Save(b.path, next); err != nil {
		return fmt.Errorf("cannot record what was decided: %w", err)
	}
	b.book = next
	return nil
}
