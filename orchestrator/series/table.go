package series

import (
	"slices"
	"time"
)

// Table adds points of several agents up to rows: of each agent over the time of a row,
// and then of all agents beside each other.
type Table struct {
	begin func(time.Time) time.Time
	rows  map[int64]map[string]Point // :: when it begins → agent → what it did
}

// NewTable returns one whose rows begin where begin says for a time in them.
func NewTable(begin func(at time.Time) time.Time) *Table {
	return &Table{begin, map[int64]map[string]Point{}}
}

// Add adds a point of an agent.
func (t *Table) Add(agent string, p Point) {
	at := t.begin(p.At)
	p.At = at
	row := t.rows[at.Unix()]
	if row == nil {
		row = map[string]Point{}
		t.rows[at.Unix()] = row
	}
	had, ok := row[agent]
	if ok {
		p = had.Then(p)
	}
	row[agent] = p
}

// Rows are those in which something happened, in the order of time.
func (t *Table) Rows() (all []Point) {
	for _, row := range t.rows {
		var sum Point
		for _, p := range row {
			at := p.At
			sum = sum.Beside(p)
			sum.At = at
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b Point) int { return a.At.Compare(b.At) })
	return all
}
