package check

import (
	"crypto/sha256"
	_ "embed" // for Schema
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Schema makes the tables. It becomes a step of the store with the commit that makes the store
// the queue.
//
//go:embed schema.sql
var Schema string

// Demand is what an entry has to pass that is not what its agent's until: says.
type Demand struct {
	// Trigger is the name of the trigger that demands it, whose present until: counts where it
	// has one; "": a sender does.
	Trigger string
	// Until is what has to be passed; nil: nothing, whatever the agent's until: says.
	Until *config.Until
}

// Words of demands, by kind.
const (
	checkWords   = "check"
	approveWords = "approve"
	envWords     = "env"
)

// Keep records what an entry has to pass, in the transaction that queues it.
func (d Demand) Keep(c *store.Change, k queue.Key) error {
	u := d.Until
	if u == nil {
		u = &config.Until{}
	}
	if _, err := c.Do(`INSERT INTO demands (agent, seq, trigger, none, program, check_timeout, aside, promise, max_iterations, max_time, hold)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		k.Agent, k.Seq, d.Trigger, d.Until == nil, u.Program, u.CheckTimeout.Milliseconds(), u.Aside, u.Promise, u.MaxIterations, u.MaxTime.Milliseconds(), u.Hold.Milliseconds()); err != nil {
		return err
	}
	for kind, words := range map[string][]string{checkWords: u.Check, approveWords: u.Approve, envWords: u.Environ()} {
		for n, word := range words {
			if _, err := c.Do(`INSERT INTO demand_words (agent, seq, kind, n, word) VALUES ($1, $2, $3, $4, $5)`, k.Agent, k.Seq, kind, n, word); err != nil {
				return err
			}
		}
	}
	return nil
}

// DemandOf returns what is demanded of an entry; nil: what its agent's until: says.
func DemandOf(v *store.View, k queue.Key) (*Demand, error) {
	var d Demand
	var u config.Until
	var nothing bool
	var timeout, most, hold int64
	found, err := v.One(`SELECT trigger, none, program, check_timeout, aside, promise, max_iterations, max_time, hold FROM demands WHERE agent = $1 AND seq = $2`,
		[]any{k.Agent, k.Seq}, &d.Trigger, &nothing, &u.Program, &timeout, &u.Aside, &u.Promise, &u.MaxIterations, &most, &hold)
	if !found || err != nil {
		return nil, err
	}
	if nothing {
		return &d, nil
	}
	u.CheckTimeout, u.MaxTime, u.Hold = time.Duration(timeout)*time.Millisecond, time.Duration(most)*time.Millisecond, time.Duration(hold)*time.Millisecond
	d.Until = &u
	return &d, v.Each(`SELECT kind, word FROM demand_words WHERE agent = $1 AND seq = $2 ORDER BY kind, n`, []any{k.Agent, k.Seq}, func(row store.Scan) error {
		var kind, word string
		err := row(&kind, &word)
		switch kind {
		case checkWords:
			u.Check = append(u.Check, word)
		case approveWords:
			u.Approve = append(u.Approve, word)
		case envWords:
			if u.Env == nil {
				u.Env = map[string]string{}
			}
			name, value, _ := strings.Cut(word, "=")
			u.Env[name] = value
		}
		return err
	})
}

// Of returns what an entry of an agent has to pass, by the nearest of three: the entry itself,
// its trigger, its agent; nil: nothing.
func Of(v *store.View, a *config.Agent, k queue.Key) (*config.Until, error) {
	d, err := DemandOf(v, k)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return a.Until, nil
	}
	return d.InForce(a), nil
}

// InForce returns what a demand means now: its trigger's until: may have changed since.
func (d *Demand) InForce(a *config.Agent) *config.Until {
	i := slices.IndexFunc(a.Triggers, func(t config.Trigger) bool { return d.Trigger != "" && t.Name == d.Trigger && t.Until != nil })
	if i >= 0 {
		return a.Triggers[i].Until
	}
	return d.Until
}

// Definition returns a hash of what has to be passed; "" of nothing.
func Definition(u *config.Until) string {
	if u == nil {
		return ""
	}
	passed := *u
	passed.Aside = false // which says only where the entry waits
	data, err := json.Marshal(passed)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// pass is a check that has passed, and waits for people.
type pass struct {
	check      int
	definition string
	output     string
	files      string
	took       time.Duration
	at         time.Time
}

func passOf(v *store.View, k queue.Key) (*pass, error) {
	var p pass
	var took, at int64
	found, err := v.One(`SELECT check_no, definition, output, files, took, at FROM passes WHERE agent = $1 AND seq = $2`,
		[]any{k.Agent, k.Seq}, &p.check, &p.definition, &p.output, &p.files, &took, &at)
	if !found || err != nil {
		return nil, err
	}
	p.took, p.at = time.Duration(took)*time.Millisecond, store.Time(at)
	return &p, nil
}

func (p pass) keep(c *store.Change, k queue.Key) error {
	if err := dropPass(c, k); err != nil {
		return err
	}
	_, err := c.Do(`INSERT INTO passes (agent, seq, check_no, definition, output, files, took, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		k.Agent, k.Seq, p.check, p.definition, p.output, p.files, p.took.Milliseconds(), store.Millis(p.at))
	return err
}

func dropPass(c *store.Change, k queue.Key) error {
	_, err := c.Do(`DELETE FROM passes WHERE agent = $1 AND seq = $2`, k.Agent, k.Seq)
	return err
}
