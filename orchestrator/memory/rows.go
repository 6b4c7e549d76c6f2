package memory

import (
	"maps"
	"slices"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/sources"
)

// row is what the store has of a trigger in its own row; times are those of the store.
type row struct {
	place int
	Definition
	gone, fired, polled, changed int64
	delay, was                   time.Duration
}

// instant is a time that counts for a rate: the nth of a millisecond.
type instant struct{ at, n int64 }

// stored is what the store has of a trigger.
type stored struct {
	row     row
	paused  Paused
	looks   int // of memo
	seen    sources.Seen
	kept    []string
	recent  []instant
	refused []Refused
}

// tables are those of triggers, each with the columns agent and trigger.
var tables = []string{"triggers", "seen_files", "fired_keys", "recent_fires", "refused_requests"}

// rowOf is a trigger's row.
func rowOf(t *Memo, place int) row {
	return row{
		place: place, Definition: t.Definition, gone: store.Millis(t.Gone), fired: store.Millis(t.Fired), polled: store.Millis(t.Polled),
		changed: store.Millis(t.Changed), delay: t.Delay, was: t.Was,
	}
}

// write brings the store in line with the memory, row by row.
func (m *Agent) write(c *store.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored == nil {
		if err := forgetTriggers(c, m.key); err != nil {
			return err
		}
		m.stored, m.used = map[string]*stored{}, map[string]int{}
	}
	now := map[string]*stored{}
	for place, t := range m.data.Triggers {
		was := m.stored[t.Key]
		if was == nil {
			was = &stored{looks: -1}
		}
		is := &stored{row: rowOf(t, place), paused: t.Paused, looks: t.looks, seen: t.Seen, kept: t.Kept, recent: instants(t.Recent), refused: t.Refused}
		if err := m.writeOne(c, t.Key, was, is); err != nil {
			m.stored = nil
			return err
		}
		now[t.Key] = is
	}
	for key := range m.stored {
		if now[key] != nil {
			continue
		}
		for _, table := range append(tables, "pauses") {
			if _, err := c.Do(`DELETE FROM `+table+` WHERE agent = $1 AND trigger = $2`, m.key, key); err != nil {
				m.stored = nil
				return err
			}
		}
	}
	for name, n := range m.data.Used {
		if m.used[name] == n {
			continue
		}
		_, err := c.Do(`INSERT INTO trigger_names (agent, name, used) VALUES ($1, $2, $3) ON CONFLICT (agent, name) DO UPDATE SET used = excluded.used`, m.key, name, n)
		if err != nil {
			m.stored = nil
			return err
		}
	}
	m.stored, m.used = now, maps.Clone(m.data.Used)
	return nil
}

// forgetTriggers removes what the triggers of the agent with a key remember.
func forgetTriggers(c *store.Change, key string) error {
	for _, statement := range []string{
		`DELETE FROM triggers WHERE agent = $1`, `DELETE FROM trigger_names WHERE agent = $1`, `DELETE FROM seen_files WHERE agent = $1`,
		`DELETE FROM fired_keys WHERE agent = $1`, `DELETE FROM recent_fires WHERE agent = $1`, `DELETE FROM refused_requests WHERE agent = $1`,
		`DELETE FROM pauses WHERE agent = $1 AND trigger <> ''`,
	} {
		if _, err := c.Do(statement, key); err != nil {
			return err
		}
	}
	return nil
}

// rows changes the rows of one trigger, until something fails.
type rows struct {
	c              *store.Change
	agent, trigger string
	err            error
}

func (r *rows) do(statement string, args ...any) {
	if r.err == nil {
		_, r.err = r.c.Do(statement, append([]any{r.agent, r.trigger}, args...)...)
	}
}

// writeOne brings the rows of one trigger in line.
func (m *Agent) writeOne(c *store.Change, key string, was, is *stored) error {
	r := &rows{c: c, agent: m.key, trigger: key}
	if was.row != is.row {
		d := is.row
		r.do(`INSERT INTO triggers (agent, trigger, place, kind, name, named, core, sieve, prompt, gone, fired, delay, was, changed, polled)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
			ON CONFLICT (agent, trigger) DO UPDATE SET place = excluded.place, kind = excluded.kind, name = excluded.name, named = excluded.named,
			core = excluded.core, sieve = excluded.sieve, prompt = excluded.prompt, gone = excluded.gone, fired = excluded.fired,
			delay = excluded.delay, was = excluded.was, changed = excluded.changed, polled = excluded.polled`,
			d.place, string(d.Kind), d.Name, d.Named, d.Core, d.Sieve, d.Prompt, d.gone, d.fired, int64(d.delay), int64(d.was), d.changed, d.polled)
	}
	if was.paused != is.paused {
		r.do(`DELETE FROM pauses WHERE agent = $1 AND trigger = $2`)
		if p := is.paused; !p.Since.IsZero() {
			r.do(`INSERT INTO pauses (agent, trigger, since, until, by_agent) VALUES ($1, $2, $3, $4, $5)`, store.Millis(p.Since), store.Millis(p.Until), p.By)
		}
	}
	if was.looks != is.looks {
		r.seen(was.seen, is.seen)
	}
	if !slices.Equal(was.kept, is.kept) {
		r.kept(was.kept, is.kept)
	}
	if !slices.Equal(was.recent, is.recent) {
		r.recent(was.recent, is.recent)
	}
	if !slices.Equal(was.refused, is.refused) {
		r.refused(is.refused)
	}
	return r.err
}

func (r *rows) seen(was, is sources.Seen) {
	for file, p := range is {
		if was[file] != p {
			r.do(`INSERT INTO seen_files (agent, trigger, file, size, modified, changed, sum) VALUES ($1, $2, $3, $4, $5, $6, $7)
				ON CONFLICT (agent, trigger, file) DO UPDATE SET size = excluded.size, modified = excluded.modified, changed = excluded.changed, sum = excluded.sum`,
				file, p.Size, p.ModTime, p.Changed, p.Sum)
		}
	}
	for file := range was {
		if _, stays := is[file]; !stays {
			r.do(`DELETE FROM seen_files WHERE agent = $1 AND trigger = $2 AND file = $3`, file)
		}
	}
}

func (r *rows) kept(was, is []string) {
	there := make(map[string]bool, len(was))
	for _, key := range was {
		there[key] = true
	}
	for _, key := range is {
		if !there[key] {
			r.do(`INSERT INTO fired_keys (agent, trigger, key, n)
				SELECT $1, $2, $3, COALESCE(MAX(n), 0) + 1 FROM fired_keys WHERE agent = $1 AND trigger = $2
				ON CONFLICT (agent, trigger, key) DO UPDATE SET n = excluded.n`, key)
		}
		delete(there, key)
	}
	for key := range there {
		r.do(`DELETE FROM fired_keys WHERE agent = $1 AND trigger = $2 AND key = $3`, key)
	}
}

func (r *rows) recent(was, is []instant) {
	for _, i := range is {
		if !slices.Contains(was, i) {
			r.do(`INSERT INTO recent_fires (agent, trigger, at, n) VALUES ($1, $2, $3, $4) ON CONFLICT (agent, trigger, at, n) DO NOTHING`, i.at, i.n)
		}
	}
	for _, i := range was {
		if !slices.Contains(is, i) {
			r.do(`DELETE FROM recent_fires WHERE agent = $1 AND trigger = $2 AND at = $3 AND n = $4`, i.at, i.n)
		}
	}
}

func (r *rows) refused(is []Refused) {
	r.do(`DELETE FROM refused_requests WHERE agent = $1 AND trigger = $2`)
	for _, f := range is {
		r.do(`INSERT INTO refused_requests (agent, trigger, sender, fault, since, last, times, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (agent, trigger, sender, fault) DO NOTHING`,
			string(f.Sender), string(f.Fault), store.Millis(f.Since), store.Millis(f.Last), f.Times, f.Detail)
	}
}

// instants are times of fires, as they are stored.
func instants(fires []time.Time) (all []instant) {
	for _, at := range fires {
		i := instant{at: store.Millis(at)}
		for slices.Contains(all, i) {
			i.n++
		}
		all = append(all, i)
	}
	return all
}

// read returns what triggers remember, by the keys of their agents: of one agent, or of all of
// them for "". In light ones files, keys, fires and requests are left out: they are not to be
// written.
func read(v *store.View, agent string, light bool) (map[string]*Agent, error) {
	r := reader{v: v, agents: map[string]*Agent{}, memos: map[[2]string]*Memo{}}
	if agent != "" {
		r.where, r.args = ` WHERE agent = $1`, []any{agent}
		r.agent(agent)
	}
	r.triggers()
	if !light {
		r.lists()
	}
	for _, m := range r.agents {
		m.stored = map[string]*stored{}
		for place, t := range m.data.Triggers {
			m.stored[t.Key] = &stored{row: rowOf(t, place), paused: t.Paused, seen: t.Seen, kept: t.Kept, recent: instants(t.Recent), refused: t.Refused}
		}
		m.used = maps.Clone(m.data.Used)
	}
	return r.agents, r.err
}

// reader reads the tables of triggers, until something fails.
type reader struct {
	v      *store.View
	where  string
	args   []any
	agents map[string]*Agent
	memos  map[[2]string]*Memo // :: key of the agent and of the trigger
	err    error
}

func (r *reader) agent(key string) *Agent {
	if r.agents[key] == nil {
		r.agents[key] = newAgent(key)
	}
	return r.agents[key]
}

// each reads columns of a table, in an order, into what into points at, and gives take the
// trigger that they are about. What belongs to no trigger is passed over.
func (r *reader) each(table, columns, order string, into []any, take func(t *Memo)) {
	if r.err != nil {
		return
	}
	var agent, trigger string
	into = append([]any{&agent, &trigger}, into...)
	r.err = r.v.Each(`SELECT agent, trigger, `+columns+` FROM `+table+r.where+` ORDER BY agent, `+order, r.args, func(scan store.Scan) error {
		err := scan(into...)
		if t := r.memos[[2]string{agent, trigger}]; err == nil && t != nil {
			take(t)
		}
		return err
	})
}

// triggers reads them, their pauses, and how often their names were used.
func (r *reader) triggers() {
	var agent string
	r.err = r.v.Each(`SELECT agent, trigger, kind, name, named, core, sieve, prompt, gone, fired, delay, was, changed, polled
		FROM triggers`+r.where+` ORDER BY agent, place`, r.args, func(scan store.Scan) error {
		var t Memo
		var gone, fired, changed, polled int64
		if err := scan(&agent, &t.Key, &t.Kind, &t.Name, &t.Named, &t.Core, &t.Sieve, &t.Prompt, &gone, &fired, &t.Delay, &t.Was, &changed, &polled); err != nil {
			return err
		}
		t.Gone, t.Fired, t.Changed, t.Polled = store.Time(gone), store.Time(fired), store.Time(changed), store.Time(polled)
		m := r.agent(agent)
		m.data.Triggers = append(m.data.Triggers, &t)
		r.memos[[2]string{agent, t.Key}] = &t
		return nil
	})
	if r.err == nil {
		r.err = r.v.Each(`SELECT agent, name, used FROM trigger_names`+r.where, r.args, func(scan store.Scan) error {
			var name string
			var used int
			err := scan(&agent, &name, &used)
			r.agent(agent).data.Used[name] = used
			return err
		})
	}
	var since, until int64
	var by string
	r.each("pauses", "since, until, by_agent", "trigger", []any{&since, &until, &by}, func(t *Memo) {
		t.Paused = Paused{store.Time(since), store.Time(until), by}
	})
}

// lists reads what triggers have seen, fired for and refused.
func (r *reader) lists() {
	var file, key string
	var p sources.Print
	r.each("seen_files", "file, size, modified, changed, sum", "trigger", []any{&file, &p.Size, &p.ModTime, &p.Changed, &p.Sum}, func(t *Memo) {
		if t.Seen == nil {
			t.Seen = sources.Seen{}
		}
		t.Seen[file] = p
	})
	r.each("fired_keys", "key", "trigger, n", []any{&key}, func(t *Memo) { t.Kept = append(t.Kept, key) })
	var at, since, last int64
	r.each("recent_fires", "at", "trigger, at, n", []any{&at}, func(t *Memo) { t.Recent = append(t.Recent, store.Time(at)) })
	var f Refused
	r.each("refused_requests", "sender, fault, since, last, times, detail", "trigger, since", []any{&f.Sender, &f.Fault, &since, &last, &f.Times, &f.Detail}, func(t *Memo) {
		f.Since, f.Last = store.Time(since), store.Time(last)
		t.Refused = append(t.Refused, f)
	})
}
