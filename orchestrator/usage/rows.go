package usage

import (
	"cmp"
	"slices"
	"time"
)

// By says what a table's rows are.
type By string

// What rows can be.
const (
	ByAgent   By = "agent"
	ByDay     By = "day" // in the reader's own zone
	ByTrigger By = "trigger"
	ByEntry   By = "entry"
	ByAccount By = "account"
	BySession By = "session"
)

// Row is what was spent on one agent, day, trigger, entry, account or session.
type Row struct {
	Key string `json:"key"`
	// Agent is the one that the entry or session belongs to; "" in other rows.
	Agent string `json:"agent,omitempty"`
	// Agents have used an account; nil in other rows.
	Agents []string `json:"agents,omitempty"`
	// Delivery names an entry beside the id that its sender gave it.
	Delivery string    `json:"delivery,omitempty"`
	From     time.Time `json:"from"` // the first record
	To       time.Time `json:"to"`   // the last one
	Sum
}

// none is the key of what was spent on no entry.
const none = "-"

// Table adds records up to rows.
type Table struct {
	By   By
	Zone *time.Location // of days

	rows map[[2]string]*Row
}

// Add adds a record.
func (t *Table) Add(r Record) {
	key, agent := t.key(r)
	row := t.rows[[2]string{agent, key}]
	if row == nil {
		if t.rows == nil {
			t.rows = map[[2]string]*Row{}
		}
		row = &Row{Key: key, Agent: agent, From: r.At}
		t.rows[[2]string{agent, key}] = row
	}
	switch t.By {
	case ByEntry:
		row.Delivery = r.Delivery
	case ByAccount:
		if !slices.Contains(row.Agents, r.Agent) {
			row.Agents = append(row.Agents, r.Agent)
		}
	case ByAgent, ByDay, ByTrigger, BySession:
	}
	row.Sum, row.To = row.Plus(r.Sum), r.At
	if r.At.Before(row.From) {
		row.From = r.At
	}
}

func (t *Table) key(r Record) (key, agent string) {
	switch t.By {
	case ByDay:
		return r.At.In(t.Zone).Format(time.DateOnly), ""
	case ByTrigger:
		return cmp.Or(r.Trigger(), none), ""
	case ByEntry:
		return cmp.Or(r.Entry, r.Delivery, none), r.Agent
	case ByAccount:
		return cmp.Or(r.Account, none), ""
	case BySession:
		return r.Session, r.Agent
	case ByAgent:
	}
	return r.Agent, ""
}

// Rows returns the rows for which something was spent: entries and sessions by time, days
// by date, all others by cost, highest first. all is their sum.
func (t *Table) Rows() (rows []Row, all Sum) {
	for _, r := range t.rows {
		if r.Sum != (Sum{}) {
			rows = append(rows, *r)
			all = all.Plus(r.Sum)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		switch t.By {
		case ByEntry, BySession:
			return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Key, b.Key))
		case ByDay:
			return cmp.Compare(a.Key, b.Key)
		case ByAgent, ByTrigger, ByAccount:
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.All(), a.All()), cmp.Compare(a.Key, b.Key))
	})
	return rows, all
}
