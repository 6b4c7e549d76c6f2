// Package ledger keeps, in the state directory, the verdicts about the work of agents. Work
// is done if it has a passed verdict here, whatever the files in an agent's directory say.
// The package decides nothing.
//
// A verdict is synced before it is applied to a queue, so that after a crash it is applied
// and not decided again. If an agent's queue is lost or edited, nothing changes here.
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

// Verdict is the decision about one check of an entry.
type Verdict struct {
	Delivery string `json:"delivery"`
	// Entry is the hash of the entry's line, because the agent can write another entry's
	// delivery id into its files.
	Entry string `json:"entry,omitempty"`
	// Check is the number of the check that the queue has asked for; Iteration is
	// what people call it.
	Check     int `json:"check"`
	Iteration int `json:"iteration"`
	// Claimed is when the session claimed to be done. It identifies the check too, because
	// the agent can set back its number.
	Claimed time.Time `json:"claimed,omitzero"`
	// Definition is the hash of the until: that applied.
	Definition string `json:"definition"`
	Passed     bool   `json:"passed"`
	// GiveUp is why the entry is given up, or "".
	GiveUp inbox.Reason `json:"give_up,omitempty"`
	// By says what decided: "check", "promise", or an approval.
	By string `json:"by"`
	// Why is what the check ended with, Output the end of what it printed.
	Why    string        `json:"why,omitempty"`
	Output string        `json:"output,omitempty"`
	Took   time.Duration `json:"took"`
	At     time.Time     `json:"at"`
	// NotBefore is the earliest time to apply it; zero: at once.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Answers is what people answered to the agent's requests, Told are those requests.
	// With such a verdict nothing was checked: the entry is handed over again with Answers.
	Answers string   `json:"answers,omitempty"`
	Told    []string `json:"told,omitempty"`
	// Applied is true once the queue has the verdict. One that did not pass is applied
	// once; if the check is requested again, it is run again.
	Applied bool `json:"applied,omitempty"`
}

// Same reports whether two verdicts are about the same check.
func (v *Verdict) Same(as Verdict) bool {
	return v.Delivery == as.Delivery && v.Entry == as.Entry && v.Check == as.Check && v.Claimed.Equal(as.Claimed) && v.Definition == as.Definition
}

// Answered is a check that has passed and waits for the yes of people.
type Answered struct {
	Check      int           `json:"check"`
	Claimed    time.Time     `json:"claimed,omitzero"`
	Definition string        `json:"definition"`
	Output     string        `json:"output,omitempty"`
	Took       time.Duration `json:"took"`
	At         time.Time     `json:"at"`
}

// Vain says how often in a row a check gave no answer, since when, and, in the words of
// package status, what happened the last time and why.
type Vain struct {
	Since time.Time `json:"since"`
	Times int       `json:"times"`
	As    string    `json:"as"`
	Why   string    `json:"why"`
}

// From says where the demand that an entry be proven comes from.
type From string

// Where demands come from.
const (
	FromAgent From = "agent" // the until: of its agent
	FromEntry From = "entry" // a Demand, of send or of a trigger
)

// Course is what is known about an entry in flight that has to be proven.
type Course struct {
	Delivery string `json:"delivery,omitempty"`
	// Entry is the hash of the line that was handed over, taken when it was first seen,
	// because the agent can change its record; "": not seen yet.
	Entry string `json:"entry,omitempty"`
	// From says whose until: the entry has to pass.
	From From       `json:"from,omitempty"`
	Past guard.Past `json:"past,omitzero"`
	// Asks counts the hand-overs with Answers.
	Asks int `json:"asks,omitempty"`
	// Files is a digest of the agent's files after the last check; "": not known.
	Files string `json:"files,omitempty"`
	// Answered is the passed check that waits for people; nil: none.
	Answered *Answered `json:"answered,omitempty"`
	// Vain counts the checks without an answer since the last verdict; nil: none.
	Vain *Vain `json:"vain,omitempty"`
	// Verdict is the last verdict; nil: none yet.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Iteration returns the number of the present hand-over, counted from 1.
func (c Course) Iteration() int { return c.Past.Iterations + c.Asks + 1 }

// Stands returns the recorded verdict if it is about the same check as another one; nil: it
// is not, and there is none to apply.
func (c Course) Stands(as Verdict) *Verdict {
	if v := c.Verdict; v != nil && v.Same(as) && (v.Passed || !v.Applied) {
		return v
	}
	return nil
}

// over reports whether the queue has the verdict, and it ends the entry.
func (c Course) over() bool {
	v := c.Verdict
	return v != nil && v.Applied && (v.Passed || v.GiveUp != "")
}

// Waits reports whether the check of a verdict has passed already and waits for people.
func (c Course) Waits(v Verdict) bool {
	a := c.Answered
	return a != nil && a.Check == v.Check && a.Claimed.Equal(v.Claimed) && a.Definition == v.Definition
}

// Proven is an entry that has passed.
type Proven struct {
	Delivery string    `json:"delivery"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	// ID is the entry's id, Record the digest of its verdict's outbox record; both are "" if
	// they are not known.
	ID     string `json:"id,omitempty"`
	Record string `json:"record,omitempty"`
}

// mostProven is how many of them are kept on disk: new outbox records are compared with them
// soon. mostPassed is how many this run remembers beside them, because comparing may fail
// for a long time.
const (
	mostProven = 256
	mostPassed = 1 << 16
)

// mostCourses is how many entries are known at once: the one in flight, those that are set
// aside, and the latest others.
const mostCourses = 4 + inbox.MostAside

// book is proofs/KEY.json.
type book struct {
	// Courses are those of the latest entries, the last one at the end.
	Courses []Course `json:"courses,omitempty"`
	Proven  []Proven `json:"proven,omitempty"`
	// Until is true if the agent's own until: was declared when its last session began.
	Until bool `json:"until,omitempty"`
	// Since is the time from which on Proven is complete; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Forged are the digests of the latest outbox records that belong to no verdict.
	Forged []string `json:"forged,omitempty"`
	// Mark is how far the outbox of a live session was compared with Proven.
	Mark *inbox.OutboxMark `json:"mark,omitempty"`
}

// Book is the ledger of one agent. Several goroutines may use it.
type Book struct {
	path   string
	mu     sync.Mutex
	passed map[string]bool // in this run
	book
}

func bookPath(stateDir, key string) string {
	return filepath.Join(stateDir, "proofs", filepath.Base(key)+".json")
}

// Open reads the book of the agent with a key. A damaged book is moved aside; Open then
// returns an empty one and an error that matches state.ErrDamaged. Verdicts that were not
// applied are then decided again.
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

// Course returns what is known about an entry.
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

// Keep durably records the course of an entry. An entry whose verdict is passed is proven
// from then on.
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

// room returns the courses, and drops one if there is no room for another: one that has
// ended, otherwise one that waits for nobody. Many entries may come and go while one that is
// set aside waits for a person.
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

// passes records an entry that has passed.
func (b *Book) passes(delivery string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passed == nil || len(b.passed) >= mostPassed {
		b.passed = map[string]bool{}
	}
	b.passed[delivery] = true
}

// Passed reports whether an entry is proven. Of the entries that passed before this run, only
// the latest are known.
func (b *Book) Passed(delivery string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passed[delivery] {
		return true
	}
	return slices.ContainsFunc(b.book.Proven, func(p Proven) bool { return p.Delivery == delivery })
}

// Demands reports whether the agent's own until: was declared when its last session began, so
// that entries are checked without a Demand.
func (b *Book) Demands() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.Until
}

// Begins records whether the agent of the session that is about to begin has its own until:.
func (b *Book) Begins(until bool) error {
	b.mu.Lock()
	same := b.book.Until == until && (!until || !b.book.Since.IsZero())
	b.mu.Unlock()
	if same {
		return nil
	}
	return b.change(func(k *book) { k.begins(until, time.Now()) })
}

// Mark returns what Marks has saved; nil: nothing.
func (b *Book) Mark() *inbox.OutboxMark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.Mark
}

// Marks saves how far the outbox was compared, for a scheduler that finds the session killed;
// nil: to its end.
func (b *Book) Marks(m *inbox.OutboxMark) error {
	if b.Mark() == nil && m == nil {
		return nil
	}
	return b.change(func(k *book) { k.Mark = m })
}

// change saves a changed book. If that fails, the book stays as it was.
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
