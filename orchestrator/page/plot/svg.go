package plot

import (
	"html/template"
	"math"
	"strconv"
	"strings"

	"heartbeat/orchestrator/series"
)

// The drawing's own units. It is stretched to its place on the page, in both directions.
const (
	step   = 10.0 // a row
	height = 100.0
	// least is the height of the smallest bar: what has happened is to be seen.
	least = 1.5
)

// draw draws the bars of a measure, and labels its axis.
func (m measure) draw(f *Figure, rows []series.Row) {
	var tops [2]float64 // the greatest values above and below the base
	for i, of := range m.of {
		for _, r := range rows {
			tops[i] = max(tops[i], of(r))
		}
	}
	above := round(tops[0])
	below := 0.0
	if len(m.of) > 1 {
		below = max(round(tops[1]), above/4)
	}
	unit := height / (above + below)
	base := above * unit
	width := step * float64(max(1, len(rows)))
	if f.Top = m.say(above); above > 1 || m.say(above/2) != f.Top {
		f.Half = m.say(above / 2)
	}
	if len(m.of) > 1 {
		f.Below = m.say(below)
	}
	var b strings.Builder
	b.WriteString(`<svg class="plot-svg" viewBox="0 0 ` + num(width) + " " + num(height) +
		`" preserveAspectRatio="none" aria-hidden="true" focusable="false">`)
	path(&b, "plot-gap", unwatched(rows))
	path(&b, "plot-grid", lineAt(0, width)+lineAt(base/2, width))
	path(&b, "plot-base", bases(rows, base))
	over, running := rows, []series.Row(nil)
	if n := len(rows); n > 0 && rows[n-1].Running {
		over, running = rows[:n-1], rows[n-1:]
	}
	for i, of := range m.of {
		path(&b, "plot-bar "+m.keys[i].Class, m.bars(over, 0, len(rows), of, base, unit, i == 1))
		path(&b, "plot-bar plot-running "+m.keys[i].Class, m.bars(running, len(over), len(rows), of, base, unit, i == 1))
	}
	b.WriteString("</svg>")
	f.SVG = template.HTML(b.String()) //nolint:gosec // of numbers and of our own words
}

// bars are those of one value of some rows, the first of which is the first-th of all, above or
// below the base.
func (m measure) bars(rows []series.Row, first, all int, of func(series.Row) float64, base, unit float64, below bool) string {
	gap, room := 2.0, base
	if below {
		room = height - base
	}
	if all > 120 {
		gap = 0.6
	}
	var b strings.Builder
	for i, r := range rows {
		value := of(r)
		if value <= 0 && (m.known == nil || !m.known(r)) {
			continue
		}
		tall := min(max(least, value*unit), room)
		if !below {
			tall = -tall
		}
		b.WriteString("M" + num(step*float64(first+i)+gap/2) + " " + num(base) + "h" + num(step-gap) + "v" + num(tall) + "h" + num(gap-step) + "z")
	}
	return b.String()
}

// unwatched is the ground of the rows that nobody watched.
func unwatched(rows []series.Row) string {
	var b strings.Builder
	for i := 0; i < len(rows); i++ {
		first := i
		for i < len(rows) && rows[i].Watched == 0 {
			i++
		}
		if i > first {
			b.WriteString("M" + num(step*float64(first)) + " 0h" + num(step*float64(i-first)) + "v" + num(height) + "h" + num(-step*float64(i-first)) + "z")
		}
	}
	return b.String()
}

// bases are the base line of the rows that somebody watched.
func bases(rows []series.Row, base float64) string {
	var b strings.Builder
	for i := 0; i < len(rows); i++ {
		first := i
		for i < len(rows) && rows[i].Watched > 0 {
			i++
		}
		if i > first {
			b.WriteString("M" + num(step*float64(first)) + " " + num(base) + "h" + num(step*float64(i-first)))
		}
	}
	return b.String()
}

func lineAt(y, width float64) string { return "M0 " + num(y) + "h" + num(width) }

func path(b *strings.Builder, class, d string) {
	if d != "" {
		b.WriteString(`<path class="` + class + `" vector-effect="non-scaling-stroke" d="` + d + `"/>`)
	}
}

// num is a number in an SVG; one that is none is zero.
func num(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
}

// round is the end of an axis for a greatest value: an even digit, or 1, with zeros. A value that is
// none, or too large, gets an axis all the same.
func round(most float64) float64 {
	if !(most > 0) || most > 1e15 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, digit := range []float64{1, 2, 4, 6, 8, 10} {
		if most <= digit*power {
			return digit * power
		}
	}
	return 10 * power
}
