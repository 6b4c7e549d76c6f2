// Package memory keeps what is remembered about agents and their triggers from one run to the
// next, so that nothing fires again or is lost because an agent or a trigger was renamed.
//
// A trigger is identified by its definition: a name that nobody gave it is a
// position in a list, and one that somebody gave it may change. An agent is
// identified by its directory, or else by its name. Each has a permanent key, under
// which its things are kept and which tells its fires from others in the inbox.
//
// Identities, pauses and holds are in the fleet's store, what triggers remember is in the state
// directory: triggers/KEY.json for each agent whose triggers have something to remember.
package memory

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
	"heartbeat/sources"
	"heartbeat/sources/webhook"
)

// Agent is the memory of an agent's triggers. Any goroutine may call its methods.
type Agent struct {
	path string

	mu   sync.Mutex
	data remembered
}

// remembered is triggers/KEY.json.
type remembered struct {
	Triggers []*memo `json:"triggers"`
	// Used counts, by name of a trigger, the keys that were made from it. No key is used
	// again, because the inbox remembers what fired under it.
	Used map[string]int `json:"used,omitempty"`
}

// memo is the memory of one trigger.
type memo struct {
	Definition
	Key string `json:"key"`
	// Gone is since when it is no longer declared, or zero.
	Gone time.Time `json:"gone,omitzero"`

	Fired time.Time `json:"fired,omitzero"` // of cron: the last fire
	// Delay is what jitter adds to each fire of a cron trigger; Was is what it
	// added before Changed.
	Delay   time.Duration `json:"delay,omitempty"`
	Was     time.Duration `json:"was,omitempty"`
	Changed time.Time     `json:"changed,omitzero"`
	Seen    sources.Seen  `json:"seen,omitempty"`  // of watch: the state of the files
	Kept    []string      `json:"kept,omitempty"`  // of poll with dedupe: what has fired
	Polled  time.Time     `json:"polled,omitzero"` // of poll: when its last successful run began
	// Recent are the times of fires that count for its rate, the oldest first.
	Recent []time.Time `json:"recent,omitempty"`
	// Refused are the requests that a webhook has refused.
	Refused []Refused `json:"refused,omitempty"`
	Paused  Paused    `json:"paused,omitzero"`
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

// Open reads what an agent's triggers remember. With state.ErrDamaged the memory is
// empty.
func Open(stateDir, key string) (*Agent, error) {
	m := &Agent{path: filepath.Join(stateDir, "triggers", key+".json")}
	var kept struct {
		remembered
		former
	}
	err := state.Load(m.path, &kept)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		m.data = kept.remembered
	}
	if m.data.Used == nil {
		m.data.Used = map[string]int{}
	}
	if err == nil {
		kept.former.into(&m.data)
	}
	return m, err
}

// former is what the file held when triggers were remembered by their names.
type former struct {
	Fired  map[string]time.Time    `json:"fired"`
	Seen   map[string]sources.Seen `json:"seen"`
	Kept   map[string][]string     `json:"kept"`
	Polled map[string]time.Time    `json:"polled"`
}

func (f former) into(r *remembered) {
	add := func(name string, kind Kind, set func(*memo)) {
		i := slices.IndexFunc(r.Triggers, func(m *memo) bool { return m.Name == name && m.Kind == kind })
		if i < 0 {
			i = len(r.Triggers)
			r.Triggers = append(r.Triggers, &memo{Definition: Definition{Kind: kind, Name: name}, Key: r.newKey(name)})
		}
		set(r.Triggers[i])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Fired)) {
		add(name, Cron, func(m *memo) { m.Fired = f.Fired[name] })
	}
	for _, name := range slices.Sorted(maps.Keys(f.Seen)) {
		add(name, Watch, func(m *memo) { m.Seen = f.Seen[name] })
	}
	for _, name := range slices.Sorted(maps.Keys(f.Kept)) {
		add(name, Poll, func(m *memo) { m.Kept = f.Kept[name] })
	}
	for _, name := range slices.Sorted(maps.Keys(f.Polled)) {
		add(name, Poll, func(m *memo) { m.Polled = f.Polled[name] })
	}
}

// Path returns the file in which the memory is kept.
func (m *Agent) Path() string { return m.path }

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
func same(before, next []*memo) bool {
	return slices.EqualFunc(before, next, func(a, b *memo) bool { return a == b })
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
			next.Triggers = append(next.Triggers, &memo{Definition: d, Key: next.newKey(d.Name), Delay: a.Delay(&a.Triggers[i])})
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
func (m *memo) goOn(d Definition, delay time.Duration, comes bool, now time.Time) *memo {
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

// change changes the memory and saves it.
func (m *Agent) change(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	return state.Save(m.path, m.data)
}

// Save saves the memory.
func (m *Agent) Save() error { return m.change(func() {}) }

// Trigger is the memory of one trigger.
type Trigger struct {
	m *Agent
	t *memo
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

// NoteFired records a fire. The caller saves it.
func (t *Trigger) NoteFired(at time.Time) { t.note(func() { t.t.Fired = at }) }

// Seen returns the files that a watch trigger has seen.
func (t *Trigger) Seen() sources.Seen {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.t.Seen
}

// KeepSeen saves the files that a watch trigger has seen.
func (t *Trigger) KeepSeen(seen sources.Seen) error {
	return t.m.change(func() { t.t.Seen = seen })
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

// NotePolled records when a successful run of a poll trigger began. The caller saves it.
func (t *Trigger) NotePolled(began time.Time) { t.note(func() { t.t.Polled = began }) }

// Recent returns the times of the trigger's fires that count for its rate.
func (t *Trigger) Recent() []time.Time {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return slices.Clone(t.t.Recent)
}

// NoteRecent records the times that Recent returns. The caller saves them.
func (t *Trigger) NoteRecent(fires []time.Time) { t.note(func() { t.t.Recent = fires }) }

// Refused returns the requests that the webhook has refused.
func (t *Trigger) Refused() []Refused {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return slices.Clone(t.t.Refused)
}

// NoteRefused records what Refused returns. The caller saves it.
func (t *Trigger) NoteRefused(all []Refused) { t.note(func() { t.t.Refused = all }) }

func (t *Trigger) note(f func()) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	f()
}
