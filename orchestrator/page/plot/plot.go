// Package plot draws what agents did over time: one Figure for each measure, as bars in an
// SVG, with the same as a table behind it. What nobody watched is told apart from what did
// not happen, by its ground, its missing base line and its words in the table.
//
// An SVG holds numbers of ours and no text: labels stand beside it, in the size of the
// page's text, however narrow the page is. It has classes and no style, as the page's
// content security policy asks for.
package plot

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/usage"
)

// MaxRows is how many rows a figure has at most: the last ones.
const MaxRows = 420

// Figure is one measure over time.
type Figure struct {
	// ID is of our own making.
	ID, Title string
	// Sum says what it comes to in all.
	Sum string
	// SVG is drawn by us, of numbers only.
	SVG template.HTML
	// Top and Half are the labels of the axis above its base, Below that of the end of
	// the part below the base, or "".
	Top, Half, Below string
	// Begin, Middle and End are the times along the axis.
	Begin, Middle, End string
	// Keys say what the colours and places of bars mean.
	Keys []Key
	// Head and Table are the same as text.
	Head  []string
	Table [][]string
	// Gaps is true if nobody watched in some of the rows, Running if the last one is not over.
	Gaps, Running bool
}

// Key is what one kind of mark means.
type Key struct{ Class, Text string }

// measure is what a figure shows of a row.
type measure struct {
	id, title string
	keys      []Key // the first is above the base, the second below
	head      []string
	of        []func(series.Row) float64
	say       func(float64) string
	cells     func(series.Row) []string
	// sum says what all rows come to.
	sum func(all series.Point, most series.Point) string
	// known, if not nil, says whether a row has a value at all.
	known func(series.Row) bool
}

// unknown stands for what nobody knows.
const unknown = "–"

func count(n float64) string { return usage.Tokens(int64(math.Round(n))) }

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// measures are the figures, in their order.
var measures = []measure{
	{
		id: "queued", title: "Queue depth", say: count,
		keys: []Key{{"plot-main", "most prompts queued at once"}},
		head: []string{"queued"}, of: []func(series.Row) float64{func(r series.Row) float64 { return float64(r.Queued) }},
		cells: func(r series.Row) []string {
			if r.Unmeasured {
				return []string{unknown}
			}
			return []string{whole(r.Queued)}
		},
		sum: func(_, most series.Point) string { return "at most " + whole(most.Queued) },
	},
	{
		id: "done", title: "Prompts done and failed", say: count,
		keys: []Key{{"plot-good", "done, above the line"}, {"plot-bad", "failed, below it"}},
		head: []string{"done", "failed"},
		of:   []func(series.Row) float64{func(r series.Row) float64 { return float64(r.Done) }, func(r series.Row) float64 { return float64(r.Failed) }},
		cells: func(r series.Row) []string {
			return []string{whole(r.Done), whole(r.Failed)}
		},
		sum: func(all, _ series.Point) string { return whole(all.Done) + " done, " + whole(all.Failed) + " failed" },
	},
	{
		id: "turns", title: "Turns", say: count,
		keys: []Key{{"plot-main", "turns that the model answered"}},
		head: []string{"turns"}, of: []func(series.Row) float64{func(r series.Row) float64 { return float64(r.Turns) }},
		cells: func(r series.Row) []string { return []string{whole(r.Turns)} },
		sum:   func(all, _ series.Point) string { return whole(all.Turns) + " in all" },
	},
	{
		id: "tokens", title: "Tokens", say: count,
		keys: []Key{{"plot-main", "in, out and written to the prompt cache"}},
		head: []string{"in", "out", "cache written", "cache read"}, of: []func(series.Row) float64{func(r series.Row) float64 { return float64(tokens(r.Point)) }},
		cells: func(r series.Row) []string {
			return []string{usage.Tokens(r.Input), usage.Tokens(r.Output), usage.Tokens(r.CacheWrite), usage.Tokens(r.CacheRead)}
		},
		sum: func(all, _ series.Point) string { return usage.Tokens(tokens(all)) + " in all" },
	},
	{
		id: "cost", title: "Cost", say: usage.Dollars,
		keys: []Key{{"plot-main", "at list price; + says that more is not known"}},
		head: []string{"cost"}, of: []func(series.Row) float64{func(r series.Row) float64 { return r.Cost }},
		cells: func(r series.Row) []string { return []string{r.Price()} },
		sum:   func(all, _ series.Point) string { return all.Price() + " in all" },
	},
	{
		id: "late", title: "Lateness of fires", say: func(s float64) string { return span(time.Duration(s * float64(time.Second))) },
		keys: []Key{{"plot-main", "the latest fire after it was due"}},
		head: []string{"fires", "late"}, of: []func(series.Row) float64{func(r series.Row) float64 { return r.Late.Seconds() }},
		cells: func(r series.Row) []string {
			if r.Fires == 0 {
				return []string{"0", "-"}
			}
			return []string{whole(r.Fires), span(r.Late)}
		},
		sum: func(all, most series.Point) string {
			if all.Fires == 0 {
				return "no fires"
			}
			return whole(all.Fires) + " fires, at most " + span(most.Late) + " late"
		},
		known: func(r series.Row) bool { return r.Fires > 0 },
	},
	{
		id: "sessions", title: "Sessions", say: count,
		keys: []Key{{"plot-main", "sessions that ended"}},
		head: []string{"sessions"}, of: []func(series.Row) float64{func(r series.Row) float64 { return float64(r.Sessions) }},
		cells: func(r series.Row) []string { return []string{whole(r.Sessions)} },
		sum:   func(all, _ series.Point) string { return whole(all.Sessions) + " in all" },
	},
}

func tokens(p series.Point) int64 { return p.Input + p.Output + p.CacheWrite }

// span is a length of time in at most three digits.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'g', 3, 64) + "s"
	case d < time.Hour:
		return strconv.FormatFloat(d.Minutes(), 'g', 3, 64) + "min"
	case d < 48*time.Hour:
		return strconv.FormatFloat(d.Hours(), 'g', 3, 64) + "h"
	}
	return strconv.FormatFloat(min(d.Hours()/24, 9999), 'f', 0, 64) + "d"
}

// Draw draws all figures of a past.
func Draw(past series.Past) []Figure {
	rows := past.Rows(MaxRows)
	var all, most series.Point
	for _, r := range rows {
		most.Queued, most.Late = max(most.Queued, r.Queued), max(most.Late, r.Late)
		all = all.Beside(r.Point)
	}
	watched := slices.ContainsFunc(rows, func(r series.Row) bool { return r.Watched > 0 })
	begin, middle, end := labels(rows, past.Every)
	var figures []Figure
	for _, m := range measures {
		f := Figure{ID: "plot-" + m.id, Title: m.title, Sum: m.sum(all, most), Keys: m.keys, Begin: begin, Middle: middle, End: end}
		if !watched {
			f.Sum = unknown
		}
		f.Head = append([]string{"time"}, m.head...)
		for _, r := range rows {
			f.Gaps, f.Running = f.Gaps || r.Watched == 0, r.Running
		}
		f.Table = table(m, rows, past.Now, past.Every)
		m.draw(&f, rows)
		figures = append(figures, f)
	}
	return figures
}

// labels are the times at the begin, in the middle and at the end of the axis.
func labels(rows []series.Row, every series.Every) (begin, middle, end string) {
	if len(rows) == 0 {
		return "", "", ""
	}
	form := "Mon 15:04"
	if every == series.Day {
		form = "2 Jan"
	}
	n := len(rows)
	if end = rows[n-1].Until.Local().Format(form); rows[n-1].Running {
		end = "now"
	}
	return rows[0].At.Format(form), rows[n/2].At.Format(form), end
}

// table is a figure as text, the latest first: people ask about those. Times that nobody
// watched are one line for all that follow each other.
func table(m measure, rows []series.Row, now time.Time, every series.Every) (lines [][]string) {
	for i := len(rows) - 1; i >= 0; i-- {
		r := rows[i]
		if r.Watched > 0 {
			line := append([]string{stamp(r.At, now, every)}, m.cells(r)...)
			switch {
			case r.Running:
				line[0] += " (so far)"
			case r.Watched < r.Slots:
				line[0] += fmt.Sprintf(" (%d%% watched)", max(1, 100*r.Watched/r.Slots))
			}
			lines = append(lines, line)
			continue
		}
		last := r.Until
		for i > 0 && rows[i-1].Watched == 0 {
			i--
		}
		line := []string{stamp(rows[i].At, now, every)}
		if !rows[i].Until.Equal(last) {
			line[0] += " to " + stamp(last, now, every)
		}
		for range m.head {
			line = append(line, "not watched")
		}
		lines = append(lines, line)
	}
	return lines
}

// stamp is a time in a table, as of a day: that day's without its date.
func stamp(at, now time.Time, every series.Every) string {
	at, now = at.Local(), now.Local()
	switch {
	case every == series.Day:
		return at.Format(time.DateOnly)
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04")
	}
	return at.Format("2 Jan 15:04")
}
