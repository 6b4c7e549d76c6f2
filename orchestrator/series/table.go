package series

import (
	"slices"
	"time"
)

// Table adds up the points of several agents to rows: first each agent's over the time of a
// row, then those of all agents.
type Table struct {
	begin  func(time.Time) time.Time
	rows   map[int64]map[string]*Point // :: begin of the row → agent → what it did
	begins map[int64]time.Time         // :: slot → begin of its row
	// last is the point that was added to last: points come agent by agent, in the order
	// of time, so that the next one is likely for the same row.
	last struct {
		agent string
		point *Point
	}
}

// newTable returns a Table. begin returns when the row with a time in it begins.
func newTable(begin func(at time.Time) time.Time) *Table {
	return &Table{begin: begin, rows: map[int64]map[string]*Point{}, begins: map[int64]time.Time{}}
}

// Add adds a point of an agent.
func (t *Table) Add(agent string, p Point) {
	slot := slotOf(p.At)
	at, known := t.begins[slot]
	if !known {
		at = t.begin(p.At)
		t.begins[slot] = at
	}
	if t.last.point == nil || t.last.agent != agent || !t.last.point.At.Equal(at) {
		t.last.agent, t.last.point = agent, t.pointOf(agent, at)
	}
	*t.last.point = t.last.point.Then(p)
}

// pointOf returns an agent's point in the row that begins at a time.
func (t *Table) pointOf(agent string, at time.Time) *Point {
	row := t.rows[at.Unix()]
	if row == nil {
		row = map[string]*Point{}
		t.rows[at.Unix()] = row
	}
	if row[agent] == nil {
		row[agent] = &Point{At: at}
	}
	return row[agent]
}

// Rows returns the rows in which something happened, in the order of time.
func (t *Table) Rows() (all []Point) {
	for _, row := range t.rows {
		var sum Point
		for _, p := range row {
			at := p.At
			sum = sum.Beside(*p)
			sum.At = at
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b Point) int { return a.At.Compare(b.At) })
	return all
}
