package main

import (
	"cmp"

	"heartbeat/hook/foreign"
)

// leastTelling is how narrow the last column of a telling table can be.
const leastTelling = 30

// telling is table for rows whose last column is prose that people read to its end: it is
// not cut, but wrapped in its column, or below its row where the column would be too
// narrow. Where there is no terminal, a page is meant.
func (p *page) telling(header []string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	last := len(header) - 1
	first, prose, wants := make([][]cell, len(rows)), make([]cell, len(rows)), width(header[last])
	for i, row := range rows {
		for j := range row {
			row[j].text = foreign.Line(row[j].text)
		}
		first[i], prose[i] = row[:last:last], row[last]
		wants = max(wants, width(prose[i].text))
	}
	columns := cmp.Or(p.columns, pageColumns)
	shown, of, widths, fits := fit(header[:last:last], first, columns)
	if !fits && p.columns > 0 {
		p.records(header, rows, header[last])
		return
	}
	from := 0
	for _, w := range widths {
		from += w + gap
	}
	if room := columns - from; room >= min(wants, leastTelling) {
		p.beside(append(shown, header[last]), of, widths, prose, room)
		return
	}
	p.headed(shown, widths)
	for i, row := range of {
		p.row(widths, row)
		if says(prose[i].text) {
			p.printf("    ")
			p.hanging(4, prose[i].colour, p.pieces(prose[i].text, columns-4))
		}
	}
}

// beside adds rows under their header, each with prose in a column of its own, which has so
// much room.
func (p *page) beside(header []string, rows [][]cell, widths []int, prose []cell, room int) {
	p.headed(header, append(widths, room))
	from := 0
	for _, w := range widths {
		from += w + gap
	}
	for i, row := range rows {
		lines := p.pieces(prose[i].text, room)
		p.row(append(widths, max(room, width(lines[0]))), append(row, cell{lines[0], prose[i].colour}))
		if len(lines) > 1 {
			p.printf("%*s", from, "")
			p.hanging(from, prose[i].colour, lines[1:])
		}
	}
}

// headed adds the header of a table.
func (p *page) headed(header []string, widths []int) {
	head := make([]cell, len(header))
	for i, h := range header {
		head[i] = cell{h, p.dim}
	}
	p.row(widths, head)
}

// pieces are the lines of prose in so many columns. A terminal would break longer words
// anyway; elsewhere they stand whole.
func (p *page) pieces(text string, columns int) []string {
	lines := wrap(text, columns)
	if p.columns > 0 {
		lines = broken(lines, columns)
	}
	return lines
}

// hanging adds lines, the first where the page ends, the others from a column on.
func (p *page) hanging(from int, colour string, lines []string) {
	for i, line := range lines {
		if i > 0 {
			p.printf("%*s", from, "")
		}
		p.coloured(colour, line)
		p.printf("\n")
	}
}
