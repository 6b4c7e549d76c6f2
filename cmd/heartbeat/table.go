package main

import (
	"cmp"
	"slices"
	"strings"

	"heartbeat/hook/foreign"
)

// cell is one field of a table, with the colour of its text.
type cell struct{ text, colour string }

// table adds rows whose columns stand under each other. Fields are one line
// each; the last one is not padded. On a terminal that is too narrow the prompts are cut
// first, then the widest columns, never what is typed next; where even that is not enough,
// each row is a few lines of its own. A table without rows is not printed.
func (p *page) table(header []string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	for _, row := range rows {
		for i := range row {
			row[i].text = foreign.Line(row[i].text)
		}
	}
	widths := widthsOf(header, rows)
	if p.columns > 0 && !fit(header, widths, p.columns) {
		p.records(header, rows)
		return
	}
	head := make([]cell, len(header))
	for i, h := range header {
		head[i] = cell{h, p.dim}
	}
	p.row(widths, head)
	for _, row := range rows {
		p.row(widths, row)
	}
}

// pageColumns is how wide a listing is where there is no terminal, leastColumns
// its last column.
const pageColumns, leastColumns = 80, 20

// listing is a table whose last column is cut where the page ends, also where that is
// no terminal.
func (p *page) listing(header []string, rows [][]cell) {
	if p.columns == 0 {
		left := pageColumns
		for _, w := range widthsOf(header, rows)[:len(header)-1] {
			left -= w + gap
		}
		for _, row := range rows {
			last := &row[len(row)-1]
			last.text = shorten(foreign.Line(last.text), max(left, leastColumns))
		}
	}
	p.table(header, rows)
}

const (
	gap = 2 // between two columns
	// least is how narrow a column can be made: a date, an id, a word of a state.
	least = 12
	// leastText is that of a prompt.
	leastText = 6
)

// typed are the columns that are typed next, texts those that stand whole elsewhere.
var typed, texts = []string{"ID", "REASON"}, []string{"PROMPT", "QUESTION"}

// widthsOf are the widths that columns want.
func widthsOf(header []string, rows [][]cell) []int {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = width(h)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], width(foreign.Line(c.text)))
		}
	}
	return widths
}

// fit makes columns narrower until all fit: prompts first, then the widest ones, one by
// one. It reports whether they do.
func fit(header []string, widths []int, columns int) bool {
	over := gap*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	for i, h := range header {
		if cut := min(over, widths[i]-leastText); cut > 0 && slices.Contains(texts, h) {
			widths[i] -= cut
			over -= cut
		}
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > least && !slices.Contains(typed, header[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// records adds each row as lines of NAME VALUE, for narrow terminals.
func (p *page) records(header []string, rows [][]cell) {
	label := 0
	for _, h := range header {
		label = max(label, width(h)+gap)
	}
	label = min(label, p.columns/2)
	for i, row := range rows {
		if i > 0 {
			p.buf.WriteByte('\n')
		}
		for j, c := range row {
			if c.text == "" {
				continue
			}
			name := shorten(header[j], label-1)
			p.coloured(p.dim, name+strings.Repeat(" ", label-width(name)))
			p.coloured(c.colour, shorten(c.text, p.columns-label))
			p.buf.WriteByte('\n')
		}
	}
}

func (p *page) row(widths []int, row []cell) {
	last := len(row) - 1
	for last >= 0 && row[last].text == "" {
		last--
	}
	for i, c := range row[:last+1] {
		c.text = shorten(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-width(c.text)+gap)
		if i == last {
			pad = "\n"
		}
		if c.colour != "" {
			c.text = c.colour + c.text + p.reset
		}
		p.buf.WriteString(c.text + pad)
	}
	if last < 0 {
		p.buf.WriteByte('\n')
	}
}

// prose is how wide lines of text are: the page, or a narrower terminal.
func (p *page) prose() int { return min(cmp.Or(p.columns, pageColumns), pageColumns) }

// plain is a row without colours.
func plain(fields ...string) []cell {
	row := make([]cell, len(fields))
	for i, f := range fields {
		row[i].text = f
	}
	return row
}
