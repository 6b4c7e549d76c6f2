package notice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Memory is what was told, by the keys of the facts.
type Memory map[string]*Told

// Told is what was told about one fact.
type Told struct {
	Fact
	// First is when it was first seen in this episode; At when it was told last, zero:
	// not yet.
	First time.Time
	At    time.Time
	// Reminders counts what was told since it began.
	Reminders int
	// Gone is since when it is not true; zero: it is. Over is true once its end was
	// told.
	Gone time.Time
	Over bool
	// Returns is how often it has come back without a day of peace.
	Returns int
	// Pending are the latest texts of what has happened and was not told, Missed how
	// many there are.
	Pending []string
	Missed  int
	Happens bool
	// PendingOf says what those are about, the texts' at the end; shorter where that is not
	// known of all.
	PendingOf []string
}

// View is what a look at the fleet has shown.
type View struct {
	Now time.Time
	// Began is when the present run began to look.
	Began time.Time
	Facts []Fact
	// Happened is what has happened since the last look.
	Happened []Fact
	// Sees reports whether the look would have shown a fact of this agent; Knows
	// whether there is such an agent at all. "" is the fleet.
	Sees, Knows func(agent string) bool
	// Stands reports whether what has happened to an agent is still so, by Fact.Of; nil: it
	// is.
	Stands func(agent, of string) bool
}

const (
	// settleUrgent and settleInfo are how long something has to be true to be told.
	settleUrgent = 10 * time.Second
	settleInfo   = time.Minute
	// calm is how long something that never came back has to be over.
	calm     = 2 * time.Minute
	mostCalm = 6 * time.Hour
	// peace is after how long without it a fact is forgotten.
	peace = 24 * time.Hour
	// slowly is how long a run may take to see what is Slow.
	slowly = 35 * time.Minute
	// mostPending is how many texts of what has happened are told at once, mostOf of how
	// much of it is known what it is about.
	mostPending = 5
	mostOf      = 500
)

// reminders are the intervals in which something urgent is told again; the last one
// repeats. What is not urgent is told again once a day.
var reminders = []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// cooling are the intervals in which what happens again and again is told.
var cooling = []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// Decide returns what is to be told now, in the order of the keys, and remembers it.
func Decide(v View, m Memory) []Notice {
	all := lasting(v, m)
	for _, f := range v.Happened {
		m.note(f, v.Now)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if t := m[key]; t.Happens {
			all = append(all, t.repeat(v)...)
			if v.Now.Sub(t.At) >= peace && t.Missed == 0 {
				delete(m, key)
			}
		}
	}
	return all
}

// Settling reports whether something is true that has not held for long enough to be
// told: it is worth looking soon.
func (m Memory) Settling() bool {
	for _, t := range m {
		if !t.Happens && t.At.IsZero() && t.Gone.IsZero() {
			return true
		}
	}
	return false
}

// Ends are since when what was told is not true any more, where its end was not told. A
// run that ends has to hand them on: the next one could take them for true.
func (m Memory) Ends() map[string]time.Time {
	ends := map[string]time.Time{}
	for key, t := range m {
		if !t.At.IsZero() && !t.Gone.IsZero() && !t.Over {
			ends[key] = t.Gone
		}
	}
	return ends
}

// KnownOver has the end of what was told by a key not be told: whoever was told knows it.
// It returns false where there is nothing like that.
func (m Memory) KnownOver(key string, now time.Time) bool {
	t := m[key]
	if t == nil || t.At.IsZero() || t.Over {
		return false
	}
	if t.Over = true; t.Gone.IsZero() {
		t.Gone = now
	}
	return true
}

// lasting goes through the facts that last.
func lasting(v View, m Memory) (all []Notice) {
	now := map[string]Fact{}
	for _, f := range v.Facts {
		if _, twice := now[f.Key]; !twice {
			now[f.Key] = f
		}
		if m[f.Key] == nil && !f.Quiet {
			m[f.Key] = &Told{First: v.Now}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		t := m[key]
		if t.Happens {
			continue
		}
		t.notAhead(v.Now)
		if f, is := now[key]; is {
			if f.Quiet {
				continue
			}
			t.takes(f)
			all = append(all, t.isTrue(v.Now)...)
			continue
		}
		if t.Agent != "" && !v.Knows(t.Agent) {
			delete(m, key)
			continue
		}
		if !v.Sees(t.Agent) || t.Slow && v.Now.Sub(v.Began) < slowly || v.Now.Sub(v.Began) < calm {
			continue
		}
		told, forget := t.isGone(v.Now)
		if all = append(all, told...); forget {
			delete(m, key)
		}
	}
	return all
}

// takes has a fact that was true before be true as it is now: since when it is counts from
// the first time, however briefly it was not.
func (t *Told) takes(f Fact) {
	before := t.Fact
	t.Fact = f
	if !t.Over && before.Of == f.Of && !before.Since.IsZero() && before.Since.Before(f.Since) {
		t.Since = before.Since
	}
}

// notAhead corrects times that a wrong clock has left: waiting for them could take
// years.
func (t *Told) notAhead(now time.Time) {
	for _, at := range []*time.Time{&t.First, &t.At, &t.Gone} {
		if at.After(now) {
			*at = now
		}
	}
}

// isTrue follows a fact that is true.
func (t *Told) isTrue(now time.Time) []Notice {
	if !t.Gone.IsZero() {
		t.Gone = time.Time{}
		t.Returns++
		if t.Over {
			t.First, t.At, t.Over, t.Reminders = now, time.Time{}, false, 0
		}
	}
	settle := settleInfo
	if t.Urgent {
		settle = settleUrgent
	}
	switch {
	case t.At.IsZero() && now.Sub(t.First) < settle:
		return nil
	case t.At.IsZero():
		t.At = now
		return []Notice{t.notice(Began, now)}
	case !t.Once && now.Sub(t.At) >= t.nextReminder():
		t.At = now
		t.Reminders++
		return []Notice{t.notice(Lasts, now)}
	}
	return nil
}

func (t *Told) nextReminder() time.Duration {
	if !t.Urgent {
		return reminders[len(reminders)-1]
	}
	return reminders[min(t.Reminders, len(reminders)-1)]
}

// isGone follows a fact that is not true any more, until it is forgotten.
func (t *Told) isGone(now time.Time) (all []Notice, forget bool) {
	if t.Gone.IsZero() {
		t.Gone = now
	}
	quiet := now.Sub(t.Gone)
	if t.Over {
		return nil, quiet >= peace
	}
	if quiet < min(mostCalm, calm<<min(t.Returns, 10)) {
		return nil, false
	}
	if t.At.IsZero() { // nobody knows of it
		return nil, true
	}
	t.Over = true
	return []Notice{t.notice(Ended, now)}, false
}

func (t *Told) notice(e Event, now time.Time) Notice {
	n := Notice{
		Key: fmt.Sprintf("%s@%s-%s", t.Key, t.First.UTC().Format("20060102T150405Z"), e), Event: e,
		Kind: t.Kind, Agent: t.Agent, Urgent: t.Urgent, At: now, Since: t.Since, Text: t.Text, Do: t.Do, Link: t.Link, To: t.To, Not: t.Not,
	}
	if n.Since.IsZero() || n.Since.After(now) {
		n.Since = t.First
	}
	if e == Lasts {
		n.Key += fmt.Sprintf("-%d", t.Reminders)
	}
	if e == Ended {
		n.Do, n.Link, n.Over = "", "", t.Gone
	}
	if t.Returns > 0 {
		n.Times = t.Returns + 1
	}
	return n
}

// note takes in something that has happened.
func (m Memory) note(f Fact, now time.Time) {
	t := m[f.Key]
	if t == nil {
		t = &Told{First: now, Happens: true}
		m[f.Key] = t
	}
	t.Fact = f
	t.Missed++
	if t.Pending = append(t.Pending, f.Text); len(t.Pending) > mostPending {
		t.Pending = slices.Delete(t.Pending, 0, 1)
	}
	if t.PendingOf = append(t.PendingOf, f.Of); len(t.PendingOf) > mostOf {
		t.PendingOf = slices.Delete(t.PendingOf, 0, 1)
	}
}

// repeat tells what has happened, unless that was told a moment ago: what has not been
// undone since.
func (t *Told) repeat(v View) []Notice {
	now := v.Now
	t.notAhead(now)
	if t.Missed == 0 || !t.At.IsZero() && now.Sub(t.At) < cooling[min(t.Reminders, len(cooling)-1)] {
		return nil
	}
	if t.forgets(v.Stands); t.Missed == 0 {
		return nil
	}
	n := Notice{
		Key: fmt.Sprintf("%s@%s-%d", t.Key, t.First.UTC().Format("20060102T150405Z"), t.Reminders), Event: Happened,
		Kind: t.Kind, Agent: t.Agent, Urgent: t.Urgent, At: now, Since: t.Since, Do: t.Do, Link: t.Link, Text: strings.Join(t.Pending, "; "), To: t.To, Not: t.Not,
		Of: slices.DeleteFunc(slices.Clone(t.PendingOf), func(of string) bool { return of == "" }),
	}
	if t.Missed > 1 {
		n.Times = t.Missed
	}
	switch more := t.Missed - len(t.Pending); {
	case more == 0:
	case len(t.Pending) == 0: // those that had a text were undone, as only dead letters are
		n.Text = prompts(more)
	default:
		n.Text = fmt.Sprintf("%d more; %s", more, n.Text)
	}
	t.At, t.Missed, t.Pending, t.PendingOf = now, 0, nil, nil
	t.Reminders++
	return []Notice{n}
}

func prompts(n int) string {
	if n == 1 {
		return "1 prompt"
	}
	return fmt.Sprintf("%d prompts", n)
}

// forgets takes out of what was not told what is not so any more.
func (t *Told) forgets(stands func(agent, of string) bool) {
	if stands == nil {
		return
	}
	var of, texts []string
	first := len(t.PendingOf) - len(t.Pending) // whose text is known
	texts = append(texts, t.Pending[:max(0, -first)]...)
	for i, o := range t.PendingOf {
		if o != "" && !stands(t.Agent, o) {
			t.Missed--
			continue
		}
		if of = append(of, o); i >= first {
			texts = append(texts, t.Pending[i-first])
		}
	}
	t.Pending, t.PendingOf = texts, of
}
