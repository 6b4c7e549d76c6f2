// Package memory keeps what is remembered about agents and their triggers from one run to the
// next, so that nothing fires again or is lost because an agent or a trigger was renamed.
//
// A trigger is identified by its definition: a name that nobody gave it is a
// position in a list, and one that somebody gave it may change. An agent is
// identified by its directory, or else by its name. Each has a permanent key, under
// which its things are kept and which tells its fires from others in the inbox.
//
// All of it is in the fleet's store: agents, pauses, holds, triggers, and what triggers have
// seen and fired for, row by row, so that a fire among 10,000 agents or 100,000 files writes
// only what is new.
package memory

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
	"heartbeat/sources/webhook"
)

// Agent is the memory of an agent's triggers. Any goroutine may call its methods.
type Agent struct {
	book   *Book
	key    string
	saving sync.Mutex // is held while it is written; taken before mu

	mu   sync.Mutex // is not held while the store is waited for
	data remembered
	// stored is what the store has, by keys of triggers, and used what it has of Used; nil: that
	// is not known, and all is written again.
	stored map[string]*stored
	used   map[string]int
}

func newAgent(key string) *Agent {
	return &Agent{key: key, data: remembered{Used: map[string]int{}}, stored: map[string]*stored{}}
}

// remembered is what an agent's triggers remember.
type remembered struct {
	Triggers []*Memo
	// Used counts, by name of a trigger, the keys that were made from it. No key is used
	// again, because the inbox remembers what fired under it.
	Used map[string]int
}

// Memo is the memory of one trigger.
type Memo struct {
	Definition
	Key string
	// Gone is since when it is no longer declared, or zero.
	Gone time.Time

	Fired time.Time // of cron: the last fire
	// Delay is what jitter adds to each fire of a cron trigger; Was is what it
	// added before Changed.
	Delay   time.Duration
	Was     time.Duration
	Changed time.Time
	Seen    sources.Seen // of watch: the state of the files
	Kept    []string     // of poll with dedupe: what has fired
	Polled  time.Time    // of poll: when its last successful run began
	// Recent are the times of fires that count for its rate, the oldest first.
	Recent []time.Time
	// Refused are the requests that a webhook has refused.
	Refused []Refused
	Paused  Paused

	looks int // how often Seen was replaced
}

// Refused are the requests of one kind of sender that a webhook has refused for one fault:
// the first, the last, and how many.
type Refused struct {
	Sender webhook.Sender `json:"sender"`
	Fault  webhook.Fault  `json:"fault"`
	Since  time.Time      `json:"since"`
	Last   time.Time      `json:"last"`
	Times  int            `json:"times"`
	// Detail is more of what is wrong with the last one, or "".
	Detail string `json:"detail,omitempty"`
}

// goneFor is how long a removed agent or trigger is remembered: it may come back.
const goneFor = 90 * 24 * time.Hour

// Anew is a trigger that starts without a memory although the agent had one of its kind: it is not
// known which one it was, or that one's memory is of no use.
type Anew struct {
	Agent   string `json:"agent"`
	Trigger string `json:"trigger"`
	Why     string `json:"why"`
	// Fires says what it will fire for.
	Fires string `json:"fires"`
}

// String describes it on one line.
func (a Anew) String() string {
	return "trigger " + a.Trigger + " of agent " + a.Agent + " starts over (" + a.Why + "): it fires for " + a.Fires
}

// Hint says how to keep a memory.
func (Anew) Hint() string {
	return "a trigger with a `name:` is known by it when the rest of its definition changes"
}

// Reasons why a trigger starts over.
const (
	whyUnknown = "it is not known which trigger it was before"
	whySieve   = "what tells its output apart has changed"
)

// Follow binds what is remembered to an agent's triggers as they are declared now,
// and returns the memory of each. comes is true for an agent that was not declared
// for a while: its schedules count from now. Changed is true if there is something
// to save.
func (m *Agent) Follow(a *config.Agent, comes bool, now time.Time) (all []*Trigger, anew []Anew, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, anew := m.data.follow(a, comes, now)
	for i := range a.Triggers {
		all = append(all, &Trigger{m, next.Triggers[i]})
	}
	changed = !same(m.data.Triggers, next.Triggers)
	m.data = next
	return all, anew, changed
}

// same reports whether nothing was bound again, forgotten, or changed.
func same(before, next []*Memo) bool {
	return slices.EqualFunc(before, next, func(a, b *Memo) bool { return a == b })
}

// follow returns what is remembered once the declared triggers are in force: their memos first, in
// their order. A memo that changes is replaced by a new one, so that a fire in progress does not
// write into it.
func (r *remembered) follow(a *config.Agent, comes bool, now time.Time) (next remembered, anew []Anew) {
	before := make([]Definition, len(r.Triggers))
	for i, m := range r.Triggers {
		before[i] = m.Definition
	}
	defined := make([]Definition, len(a.Triggers))
	for i := range a.Triggers {
		defined[i] = define(&a.Triggers[i])
	}
	was := follow(before, func(i int) bool { return comes || !r.Triggers[i].Gone.IsZero() }, defined)
	next.Used = maps.Clone(r.Used)
	left := map[Kind]bool{} // the kinds of memos that no trigger has taken over
	for i, m := range r.Triggers {
		if !comes && m.Gone.IsZero() && !slices.Contains(was, i) {
			left[m.Kind] = true
		}
	}
	for i, d := range defined {
		if was[i] < 0 {
			next.Triggers = append(next.Triggers, &Memo{Definition: d, Key: next.newKey(d.Name), Delay: a.Delay(&a.Triggers[i])})
			if fires := d.firesAnew(); left[d.Kind] && fires != "" {
				anew = append(anew, Anew{a.Name, d.Name, whyUnknown, fires})
			}
			continue
		}
		m := r.Triggers[was[i]]
		if m.Kind == Poll && m.Core != "" && m.Sieve != d.Sieve && len(m.Kept) > 0 && d.Sieve != "" {
			anew = append(anew, Anew{a.Name, d.Name, whySieve, d.firesAnew()})
		}
		next.Triggers = append(next.Triggers, m.goOn(d, a.Delay(&a.Triggers[i]), comes, now))
	}
	for i, m := range r.Triggers {
		if slices.Contains(was, i) || !m.Gone.IsZero() && now.Sub(m.Gone) > goneFor {
			continue
		}
		if m.Gone.IsZero() {
			m = new(*m)
			m.Gone = now
		}
		next.Triggers = append(next.Triggers, m)
	}
	return next, anew
}

// firesAnew returns what a trigger without a memory fires for again; "": nothing.
func (d Definition) firesAnew() string {
	switch {
	case d.Kind == Watch:
		return "each file that matches now"
	case d.Kind == Poll && d.Sieve != "":
		return "all that its command prints, also what has fired before"
	}
	return ""
}

// newKey makes a key from a name that was never used before.
func (r *remembered) newKey(name string) string {
	r.Used[name]++
	return keyOf(name, r.Used[name])
}

// keyOf returns the nth key of a name. Names do not contain "~".
func keyOf(name string, n int) string {
	if n <= 1 {
		return name
	}
	return name + "~" + strconv.Itoa(n)
}

// goOn returns the memo of a trigger that existed before, for its present declaration.
func (m *Memo) goOn(d Definition, delay time.Duration, comes bool, now time.Time) *Memo {
	comes = comes || !m.Gone.IsZero()
	if m.Definition == d && m.Delay == delay && !comes {
		return m
	}
	n := new(*m)
	n.Definition, n.Gone = d, time.Time{}
	if d.Kind == Cron && (comes || m.Core != "" && m.Core != d.Core) {
		n.Fired = now // the schedule counts from the change
	}
	if m.Delay != delay {
		n.Delay, n.Was, n.Changed = delay, m.Delay, now
	}
	if m.Core == "" { // from a version that did not record the delay
		n.Was, n.Changed = 0, time.Time{}
	} else if m.Sieve != d.Sieve {
		n.Kept = nil
	}
	return n
}

// Trigger is the memory of one trigger.
type Trigger struct {
	m *Agent
	t *Memo
}

// Key names the trigger permanently within its agent.
func (t *Trigger) Key() string { return t.t.Key }

// Fired returns when a cron trigger last fired, or since when its schedule counts;
// zero when it is new.
func (t *Trigger) Fired() time.Time {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.t.Fired
}

// Delayed returns the delay that a cron trigger had before, and until when.
func (t *Trigger) Delayed() (was time.Duration, until time.Time) { return t.t.Was, t.t.Changed }

// NoteFired records a fire. The caller has it saved (Agent.SaveSoon).
func (t *Trigger) NoteFired(at time.Time) { t.note(func() { t.t.Fired = at }) }

// Seen returns the files that a watch trigger has seen.
func (t *Trigger) Seen() sources.Seen {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.t.Seen
}

// KeepSeen saves the files that a watch trigger has seen.
func (t *Trigger) KeepSeen(seen sources.Seen) error {
	return t.m.change(func() {
		t.t.Seen = seen
		t.t.looks++
	})
}

// Kept returns what a poll trigger with dedupe has fired for, and when its last successful run
// began.
func (t *Trigger) Kept() (kept []string, polled time.Time) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.t.Kept, t.t.Polled
}

// Keep saves what a poll trigger has fired for.
func (t *Trigger) Keep(kept []string) error { return t.m.change(func() { t.t.Kept = kept }) }

// NotePolled records when a successful run of a poll trigger began. The caller has it saved (Agent.SaveSoon).
func (t *Trigger) NotePolled(began time.Time) { t.note(func() { t.t.Polled = began }) }

// Recent returns the times of the trigger's fires that count for its rate.
func (t *Trigger) Recent() []time.Time {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return slices.Clone(t.t.Recent)
}

// NoteRecent records the times that Recent returns. The caller has them saved.
func (t *Trigger) NoteRecent(fires []time.Time) { t.note(func() { t.t.Recent = fires }) }

// Refused returns the requests that the webhook has refused.
func (t *Trigger) Refused() []Refused {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return slices.Clone(t.t.Refused)
}

// NoteRefused records what Refused returns. The caller has it saved (Agent.SaveSoon).
func (t *Trigger) NoteRefused(all []Refused) { t.note(func() { t.t.Refused = all }) }

func (t *Trigger) note(f func()) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	f()
}
